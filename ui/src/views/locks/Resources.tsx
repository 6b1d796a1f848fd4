import type { ResourceUse } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { Empty, Loaded } from "../../parts/Messages";
import { Since } from "../../parts/Times";
import { useAnswer } from "../../state/answers";

/** What tool calls have in their hands at this moment, and which calls wait for their turn. */
export function Resources({ sessionId }: { sessionId: string }) {
  const answer = useAnswer(
    "resource.list",
    { sessionId },
    ({ name }) => name.startsWith("resource.") || name === "step.finished",
  );
  return (
    <Loaded answer={answer}>
      {({ resources }) =>
        resources.length === 0 ? (
          <Empty title="Nothing at the moment.">
            Tools say what they touch, such as a file. Calls that would get into each other's way take turns by
            themselves; who waits is shown here, and as paused in the fleet.
          </Empty>
        ) : (
          <div className="table-box">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Resource</th>
                  <th scope="col">In the hands of</th>
                  <th scope="col">Waiting</th>
                </tr>
              </thead>
              <tbody>
                {resources.map(({ resource, holders, waiting }) => (
                  <tr key={resource}>
                    <td className="mono locks-name">{resource}</td>
                    <td>
                      <Uses uses={holders} />
                    </td>
                    <td>
                      <Uses uses={waiting} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      }
    </Loaded>
  );
}

function Uses({ uses }: { uses: ResourceUse[] }) {
  return (
    <ul>
      {uses.map((use) => (
        <li key={use.stepId}>
          <AgentLink agentId={use.agentId} /> to {use.access}, for <Since at={use.since} />
        </li>
      ))}
    </ul>
  );
}
