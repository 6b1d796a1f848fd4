import { useId } from "react";
import { Loaded } from "../parts/Messages";
import { useAnswer } from "../state/answers";
import { usePage } from "../state/page";
import type { OwnForm } from "./definition";

/** The fields of a definition that most agents need; templates and `config` have the others. */
export function OwnDefinition({ form, onChange }: { form: OwnForm; onChange: (form: OwnForm) => void }) {
  const model = usePage((page) => page.server?.model);
  const change = (fields: Partial<OwnForm>) => onChange({ ...form, ...fields });
  return (
    <>
      <div className="new-agent-two">
        <label className="field">
          Name
          <input value={form.name} placeholder="Alice" onChange={({ target }) => change({ name: target.value })} />
        </label>
        <label className="field">
          Model
          <input
            title="Several, with commas between them: the others are asked while the first cannot answer."
            value={form.model}
            placeholder={model ? `${model}, as the server has it` : ""}
            spellCheck={false}
            onChange={({ target }) => change({ model: target.value })}
          />
        </label>
      </div>
      <label className="field">
        Description (other agents read it)
        <input
          value={form.description}
          placeholder="Reads logs and says what went wrong"
          onChange={({ target }) => change({ description: target.value })}
        />
      </label>
      <label className="field">
        Prompt
        <textarea rows={5} value={form.prompt} onChange={({ target }) => change({ prompt: target.value })} />
      </label>
      <Tools form={form} onChange={onChange} />
    </>
  );
}

function Tools({ form, onChange }: { form: OwnForm; onChange: (form: OwnForm) => void }) {
  const group = useId(); // several agents may be defined in one form
  const tools = useAnswer("tool.list", form.isToolsChosen ? {} : null);
  function toggle(name: string) {
    const next = new Set(form.tools);
    if (!next.delete(name)) next.add(name);
    onChange({ ...form, tools: next });
  }
  return (
    <fieldset className="new-agent-tools">
      <legend>Tools</legend>
      <label>
        <input
          type="radio"
          name={group}
          checked={!form.isToolsChosen}
          onChange={() => onChange({ ...form, isToolsChosen: false })}
        />{" "}
        Those for working with other agents, and those that the server was given
      </label>
      <label>
        <input
          type="radio"
          name={group}
          checked={form.isToolsChosen}
          onChange={() => onChange({ ...form, isToolsChosen: true })}
        />{" "}
        Only these
      </label>
      {form.isToolsChosen && (
        <>
          <Loaded answer={tools}>
            {(data) => (
              <div className="new-agent-list new-agent-grid">
                {data.tools
                  .filter(({ error }) => error === null)
                  .map(({ name, description }) => (
                    <label key={name} title={description}>
                      <input type="checkbox" checked={form.tools.has(name)} onChange={() => toggle(name)} /> {name}
                    </label>
                  ))}
              </div>
            )}
          </Loaded>
          <label className="field">
            Others by name, such as those of MCP servers
            <input
              value={form.otherTools}
              spellCheck={false}
              onChange={({ target }) => onChange({ ...form, otherTools: target.value })}
            />
          </label>
        </>
      )}
    </fieldset>
  );
}
