import { type FormEvent, useState } from "react";
import { Dialog } from "../parts/Dialog";
import { Loaded } from "../parts/Messages";
import { notify } from "../state/actions";
import { useAnswer } from "../state/answers";
import { useIsLive, usePage, useWorld, whyNotLive } from "../state/page";
import { server } from "../state/server";
import { EMPTY_FORM, freeId, idProblem, ownConfig } from "./definition";
import { OwnDefinition } from "./OwnDefinition";
import { TemplateChoice } from "./TemplateChoice";

/** Makes an agent, of a template or of a definition of one's own. */
export function NewAgentDialog({ template: first = "", onClose }: { template?: string; onClose: () => void }) {
  const templates = useAnswer("template.list", {});
  const agents = useWorld((world) => world.agents);
  const sessionId = usePage((page) => page.sessionId);
  const isLive = useIsLive();
  const [way, setWay] = useState<"template" | "own">("template");
  const [template, setTemplate] = useState(first);
  const [form, setForm] = useState(EMPTY_FORM);
  const [id, setId] = useState<string | null>(null);
  const [autoStart, setAutoStart] = useState(true);
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const proposed = way === "template" ? freeId(template, agents) : freeId(form.name.toLowerCase(), agents);
  const agentId = id ?? proposed;

  async function create(event: FormEvent) {
    event.preventDefault();
    const wrong = way === "template" && template === "" ? "Choose a template first." : idProblem(agentId, agents);
    setProblem(wrong);
    if (wrong !== "") return;
    setIsBusy(true);
    const made = way === "template" ? { template } : { config: ownConfig(form) };
    try {
      await server().call("async.createAgent", { sessionId: sessionId ?? "", agentId, autoStart, ...made });
      notify(`Made the agent ${agentId}.`);
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
      setIsBusy(false);
    }
  }
  return (
    <Dialog title="New agent" onClose={onClose} wide>
      <form method="dialog" noValidate onSubmit={create}>
        <div className="new-agent-ways">
          <label>
            <input type="radio" name="way" checked={way === "template"} onChange={() => setWay("template")} /> Of a
            template
          </label>
          <label>
            <input type="radio" name="way" checked={way === "own"} onChange={() => setWay("own")} /> Of a definition of
            my own
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
        <p className="steer-problem" role="alert">
          {problem}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            className="primary"
            disabled={isBusy || !isLive}
            title={isLive ? undefined : whyNotLive()}
          >
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
