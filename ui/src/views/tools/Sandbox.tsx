import { Fact } from "../../parts/Fact";
import { bytes } from "../../parts/format";
import { Ago } from "../../parts/Times";
import { usePage } from "../../state/page";

/** What is told of each sandbox; others are just named. */
const TOLD: Readonly<Record<string, string>> = {
  none: "Nothing holds the programs of agents: they may do what the server may. Give agents tools that run programs only if you trust what these run.",
  auto: "Which one holds the programs of agents is found out when the first of them runs.",
};

/** What the server is, and what holds the programs that agents run. */
export function Sandbox() {
  const server = usePage((page) => page.server);
  if (server === null) return <p className="loading">Loading…</p>;
  const { sandbox, version, model, principal, maxFrameBytes, startedAt } = server;
  const told =
    TOLD[sandbox] ?? "It holds the programs of agents: they see their own folders and those granted to them.";
  return (
    <section className="card tools-definition" aria-label="Sandbox">
      <h2>
        Sandbox:{" "}
        <span className="state" data-state={sandbox === "none" ? "paused" : sandbox === "auto" ? "idle" : "active"}>
          {sandbox}
        </span>
      </h2>
      <p>{told}</p>
      <dl className="tools-fields">
        <Fact name="Server">version {version}</Fact>
        <Fact name="Model">{model}</Fact>
        <Fact name="You are">{principal}</Fact>
        <Fact name="Longest message">{bytes(maxFrameBytes)}</Fact>
        <Fact name="Started">
          <Ago at={startedAt} />
        </Fact>
      </dl>
    </section>
  );
}
