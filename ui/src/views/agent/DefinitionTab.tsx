import type { ReactNode } from "react";
import type { AgentDefinition, AgentDetails } from "../../client/client";
import { Fact } from "../../parts/Fact";
import { words } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Loaded } from "../../parts/Messages";
import { At } from "../../parts/Times";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { INHERIT } from "../../steer/definition";

/** What the agent is, apart from what it is doing: its prompt, its tools, what it may touch. */
export function DefinitionTab({ agentId }: { agentId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const at = useHorizon();
  const details = useAnswer(
    "agent.get",
    { sessionId, agentId },
    (note) => note.name === "agent.redefined" && note.params.agentId === agentId,
  );
  return (
    <>
      {at !== Number.POSITIVE_INFINITY && (
        <p className="quiet">The definition is shown as it is now: the log does not keep earlier ones.</p>
      )}
      <Loaded answer={details}>{(data) => <Definition details={data} />}</Loaded>
    </>
  );
}

function Definition({ details }: { details: AgentDetails }) {
  const { definition, ownTools } = details;
  return (
    <div className="agent-definition">
      <dl className="agent-dl agent-dl-wide">
        <Fact name="Name">{definition.name || details.agentId}</Fact>
        {(definition.aliases?.length ?? 0) > 0 && <Fact name="Aliases">{tags(definition.aliases)}</Fact>}
        <Fact name="Made">
          <At at={details.createdAt} />
        </Fact>
        {details.startedAt !== null && (
          <Fact name="Started">
            <At at={details.startedAt} />
          </Fact>
        )}
        <Fact name="Model">
          {modelsOf(definition).map((name, at) => (
            <div key={name}>
              {at > 0 && <span className="quiet">if it cannot answer: </span>}
              <ModelName stated={name} />
            </div>
          ))}
        </Fact>
        <Fact name="Tools">
          {definition.tools == null ? (
            <span className="quiet">the coordination tools, and those that were provided</span>
          ) : (
            tags(definition.tools, "none")
          )}
        </Fact>
        {ownTools.length > 0 && <Fact name="Own tools">{tags(ownTools)}</Fact>}
        <Fact name="Folders">
          {tags(
            Object.entries(definition.folders ?? {}).map(([name, access]) => `${name}: ${access}`),
            "none but its own",
          )}
        </Fact>
        <Fact name="Network">{tags(definition.network, "none")}</Fact>
        <Fact name="Asks a person before">{tags(definition.approve, "what the tools say themselves")}</Fact>
        <Fact name="Cut answers">{definition.cut_answers === "final" ? "are final" : "are continued"}</Fact>
        <Fact name="Subscribes to">{tags(definition.subscribes, "no events")}</Fact>
        <Values name="Settings" values={definition.settings} />
        <Values name="Limits" values={definition.limits} />
        <Values name="Retries" values={definition.retry} />
        <Values name="Supervision" values={definition.supervision} />
        {(definition.schedule?.length ?? 0) > 0 && (
          <Fact name="Schedules">
            <ul>
              {definition.schedule?.map((each) => (
                <li key={JSON.stringify(each)}>
                  {each.cron ?? `every ${each.interval_seconds} s`}: {each.prompt ?? `event ${each.event}`}
                </li>
              ))}
            </ul>
          </Fact>
        )}
      </dl>
      {definition.output_schema != null && (
        <section className="agent-part">
          <h2>Output schema</h2>
          <LongText text={JSON.stringify(definition.output_schema, null, 2)} mono />
        </section>
      )}
      <section className="agent-part">
        <h2>Prompt</h2>
        {definition.prompt ? <LongText text={definition.prompt} /> : <p className="quiet">It has none.</p>}
      </section>
    </div>
  );
}

/** The models in the order in which they are asked. */
function modelsOf({ model }: AgentDefinition): readonly string[] {
  return typeof model === "object" ? model : [model ?? INHERIT];
}

/** The one that it names, else the server's. */
function ModelName({ stated }: { stated: string }) {
  const ofServer = usePage((page) => page.server?.model);
  if (stated !== INHERIT) return stated;
  return (
    <>
      {ofServer} <span className="quiet">{ofServer ? "(the server's)" : "that of the server"}</span>
    </>
  );
}

function tags(names: readonly string[] | undefined, none = ""): ReactNode {
  if (!names?.length) return <span className="quiet">{none}</span>;
  return (
    <span className="agent-tags">
      {names.map((name) => (
        <code key={name} className="tag">
          {name}
        </code>
      ))}
    </span>
  );
}

type Group = AgentDefinition["limits"] | AgentDefinition["retry"] | AgentDefinition["settings"];

/** Fields that have fields: each with what is stated. */
function Values({ name, values }: { name: string; values: Group }) {
  const stated = Object.entries(values ?? {}).filter(([, value]) => value !== null);
  if (stated.length === 0) return null;
  return (
    <Fact name={name}>
      {tags(
        stated.map(([key, value]) => `${words(key)}: ${typeof value === "string" ? value : JSON.stringify(value)}`),
      )}
    </Fact>
  );
}
