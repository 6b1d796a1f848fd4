import type { TemplateEntry } from "../../client/client";
import { useActing } from "../../parts/acting";
import { Icon } from "../../parts/Icon";
import { Empty, Loaded } from "../../parts/Messages";
import { useSelection } from "../../shell/addresses";
import { openDialog } from "../../shell/dialogState";
import { useAnswer } from "../../state/answers";
import { fieldsOf } from "./describe";

/** The templates that agents can be made of, and the definition of the one that is chosen. */
export function Templates() {
  const answer = useAnswer("template.list", {});
  const [chosen, choose] = useSelection("template");
  return (
    <Loaded answer={answer}>
      {({ templates }) => (
        <div className="tools-two" data-chosen={chosen !== ""}>
          <ul className="tools-templates" aria-label="Templates">
            {templates.map((template) => (
              <li key={template.path + template.name}>
                <Line template={template} isChosen={template.name === chosen} onChoose={choose} />
              </li>
            ))}
          </ul>
          {chosen === "" ? (
            <Empty title="Choose a template.">
              Its definition is shown here: the prompt, the model, the tools and the limits of an agent that is created
              from it.
            </Empty>
          ) : (
            <Definition name={chosen} onBack={() => choose("")} />
          )}
        </div>
      )}
    </Loaded>
  );
}

interface LineProps {
  template: TemplateEntry;
  isChosen: boolean;
  onChoose: (name: string) => void;
}

function Line({ template, isChosen, onChoose }: LineProps) {
  const { name, description, kind, path, error } = template;
  if (error !== null)
    return (
      <div className="tools-broken">
        <strong>{path || name}</strong>
        <p>{error}</p>
      </div>
    );
  return (
    <button type="button" className="tools-template" aria-pressed={isChosen} onClick={() => onChoose(name)}>
      <strong>{name}</strong> <span className="tag">{kind}</span>
      <span className="quiet tools-description">{description}</span>
    </button>
  );
}

function Definition({ name, onBack }: { name: string; onBack: () => void }) {
  const answer = useAnswer("template.get", { name });
  const acting = useActing();
  return (
    <article className="card tools-definition" aria-label={`Definition of ${name}`}>
      <header className="view-head">
        <button type="button" className="icon-button tools-back" aria-label="All templates" onClick={onBack}>
          <Icon name="back" />
        </button>
        <h2>{name}</h2>
        <span className="space" />
        <button
          type="button"
          className="primary"
          {...acting}
          onClick={() => openDialog({ kind: "new-agent", template: name })}
        >
          New agent from it
        </button>
      </header>
      <Loaded answer={answer}>
        {({ source, definition }) => (
          <>
            <p className="quiet tools-source">{source}</p>
            <dl className="tools-fields">
              {fieldsOf(definition).map((field) => (
                <div key={field.name} data-block={field.isBlock}>
                  <dt>{field.name}</dt>
                  <dd>{field.isBlock ? <pre>{field.text}</pre> : field.text}</dd>
                </div>
              ))}
            </dl>
          </>
        )}
      </Loaded>
    </article>
  );
}
