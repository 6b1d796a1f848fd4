import type { ToolEntry } from "../../client/client";
import { Empty, Loaded } from "../../parts/Messages";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { APPROVAL, groupTools, KINDS } from "./describe";

/** The tools that agents can be granted, by what they are for. */
export function ToolTable() {
  const answer = useAnswer("tool.list", {});
  const [query, setQuery] = useSelection("q");
  return (
    <>
      <div className="line">
        <input
          type="search"
          data-filter
          className="tools-filter"
          aria-label="Filter tools"
          placeholder="Filter tools ( / )"
          value={query}
          onChange={({ target }) => setQuery(target.value)}
        />
        <button type="button" onClick={answer.again}>
          Look again
        </button>
      </div>
      <Loaded answer={answer}>{({ tools }) => <Groups tools={tools} query={query} />}</Loaded>
    </>
  );
}

function Groups({ tools, query }: { tools: readonly ToolEntry[]; query: string }) {
  const { broken, usable } = groupTools(tools, query);
  return (
    <>
      {broken.map(({ name, source, error }) => (
        <div key={source + name} className="tools-broken" role="alert">
          <strong>{source || name}</strong>
          <p>{error}</p>
        </div>
      ))}
      {usable.length === 0 && (
        <Empty title="No tool matches.">
          Tools are Python functions: in files that the server is told of, or provided by the program that runs it.
        </Empty>
      )}
      {usable.map(([kind, members]) => (
        <section key={kind} className="tools-group">
          <h2>
            {kind} <span className="quiet tools-about">{KINDS[kind]}</span>
          </h2>
          <div className="table-box">
            <table className="table tools-table">
              <thead>
                <tr>
                  <th scope="col">Tool</th>
                  <th scope="col">What it does</th>
                  <th scope="col" title="Whether a person has to allow calls">
                    Approval
                  </th>
                  <th scope="col" title="Others that touch the same wait for their turn">
                    Touches
                  </th>
                  <th scope="col">From</th>
                </tr>
              </thead>
              <tbody>
                {members.map((tool) => (
                  <Row key={tool.name} tool={tool} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ))}
    </>
  );
}

function Row({ tool }: { tool: ToolEntry }) {
  const { name, description, needsApproval, touches, source, untrusted, idempotent, kind } = tool;
  return (
    <tr>
      <th scope="row" className="mono tools-name">
        {name}
      </th>
      <td>
        <p className="tools-description">{description}</p>
        <span className="tools-tags">
          {untrusted && (
            <span className="tag" title="What it brings may be written by strangers: models are told so.">
              brings outside text
            </span>
          )}
          {idempotent === "always" && (
            <span className="tag" title="A call that was cut off is simply made again.">
              safe to repeat
            </span>
          )}
        </span>
      </td>
      <td data-label="Approval">{APPROVAL[needsApproval]}</td>
      <td data-label="Touches">{touches.join(", ") || "–"}</td>
      <td data-label="From" className="tools-source quiet">
        {source || (kind === "own" ? "the program" : "the package")}
      </td>
    </tr>
  );
}
