import { useState } from "react";
import { Asking } from "../parts/Asking";
import { Loaded } from "../parts/Messages";
import { attempt, notify } from "../state/actions";
import { useAnswer } from "../state/answers";
import { useWorld } from "../state/page";
import { EMPTY_FORM, freeId, idProblem, ownConfig } from "./definition";
import { OwnDefinition } from "./OwnDefinition";
import { TemplateChoice } from "./TemplateChoice";

/** Makes an agent, of a template or of a definition of one's own. */
export function NewAgentDialog({ template: first = "", onClose }: { template?: string; onClose: () => void }) {
  const templates = useAnswer("template.list", {});
  const agents = useWorld((world) => world.agents);
  const [way, setWay] = useState<"template" | "own">("template");
  const [template, setTemplate] = useState(first);
  const [form, setForm] = useState(EMPTY_FORM);
  const [id, setId] = useState<string | null>(null);
  const [autoStart, setAutoStart] = useState(true);
  const proposed = way === "template" ? freeId(template, agents) : freeId(form.name.toLowerCase(), agents);
  const agentId = id ?? proposed;

  async function create() {
    const wrong = way === "template" && template === "" ? "Choose a template first." : idProblem(agentId, agents);
    if (wrong !== "") return wrong;
    const made = way === "template" ? { template } : { config: ownConfig(form) };
    await attempt("async.createAgent", { agentId, autoStart, ...made });
    notify(`Created the agent ${agentId}.`);
    return undefined;
  }
  return (
    <Asking title="New agent" action="Create" onSubmit={create} onClose={onClose} wide>
      <div className="new-agent-ways">
        <label>
          <input type="radio" name="way" checked={way === "template"} onChange={() => setWay("template")} /> From a
          template
        </label>
        <label>
          <input type="radio" name="way" checked={way === "own"} onChange={() => setWay("own")} /> From my own
          definition
        </label>
      </div>
      {way === "template" ? (
        <div className="new-agent-body">
          <Loaded answer={templates}>
            {(data) => <TemplateChoice templates={data.templates} chosen={template} onChoose={setTemplate} />}
          </Loaded>
        </div>
      ) : (
        <OwnDefinition form={form} onChange={setForm} />
      )}
      <label className="field">
        Id
        <input
          value={agentId}
          placeholder="alice"
          spellCheck={false}
          autoComplete="off"
          onChange={({ target }) => setId(target.value)}
        />
      </label>
      <label className="new-agent-start">
        <input type="checkbox" checked={autoStart} onChange={({ target }) => setAutoStart(target.checked)} /> Start it
        at once: it takes work
      </label>
    </Asking>
  );
}
