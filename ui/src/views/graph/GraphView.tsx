import "./graph.css";
import { useMemo } from "react";
import { FirstAgent } from "../../parts/FirstAgent";
import { Icon } from "../../parts/Icon";
import { Empty } from "../../parts/Messages";
import { useIsNarrow } from "../../parts/narrow";
import { useSelection } from "../../shell/addresses";
import { usePage, useWorld } from "../../state/page";
import { Canvas } from "./Canvas";
import { type Choices, type Picked, useChoices, usePicked } from "./choices";
import { EdgePanel } from "./EdgePanel";
import { Filtering } from "./Filtering";
import { LinkTable } from "./LinkTable";
import { useLighting } from "./lights";
import { Chain, NodePanel } from "./NodePanel";
import { useName } from "./names";
import { MOST_NODES, type Scene } from "./scene";

import { usePlaces } from "./usePlaces";
import { useScene } from "./useScene";
import { waitChains } from "./waits";

/** Who has to do with whom, as it happens. */
export default function GraphView() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const hasAgents = useWorld((world) => world.agents.size > 0);
  if (!hasAgents) {
    return (
      <>
        <h1>Graph</h1>
        <Empty title="No agents yet">
          <p>
            Each agent is drawn here, with a line to whomever it mails, asks, hands work over to or wakes with an event.
            Create some agents, and give them something to do together.
          </p>
          <FirstAgent />
        </Empty>
      </>
    );
  }
  return <Graph key={sessionId} sessionId={sessionId} />;
}

function Graph({ sessionId }: { sessionId: string }) {
  const choices = useChoices();
  const scene = useScene(choices.filters);
  const [picked, pick] = usePicked();
  const [shape, setShape] = useSelection("as", "graph");
  const places = usePlaces(sessionId, scene);
  const isWide = !useIsNarrow();
  useLighting();
  const isTable = shape === "table";
  return (
    <>
      <header className="view-head">
        <h1>Graph</h1>
        <span className="space" />
        <button type="button" aria-pressed={isTable} onClick={() => setShape(isTable ? "graph" : "table")}>
          As a table
        </button>
        <button type="button" disabled={isTable} onClick={places.again}>
          Lay out again
        </button>
      </header>
      <Filtering choices={choices} />
      <div className="graph-body">
        <div className="graph-main">
          <Told scene={scene} choices={choices} onPick={pick} />
          {isTable ? (
            <LinkTable scene={scene} onPick={pick} />
          ) : (
            <Canvas
              scene={scene}
              positions={places.positions}
              picked={picked}
              onPick={pick}
              onMove={places.move}
              turn={places.turn}
              isWide={isWide}
            />
          )}
        </div>
        <Panel picked={picked} onPick={pick} />
      </div>
    </>
  );
}

interface ToldProps {
  readonly scene: Scene;
  readonly choices: Choices;
  readonly onPick: (picked: Partial<Picked>) => void;
}

const MOST_CHAINS = 4;

/** What the picture does not show by itself: what is left out of it, and which waits follow each other. */
function Told({ scene, choices, onPick }: ToldProps) {
  const name = useName();
  const chains = useMemo(() => waitChains(scene.waits).filter((chain) => chain.length > 2), [scene.waits]);
  const { hidden } = scene;
  const isFull = choices.filters.agents === "all" || scene.nodes.length > MOST_NODES;
  return (
    <div className="graph-told">
      <span className="quiet">
        {scene.nodes.length} shown
        {hidden > 0 && `, ${hidden} more ${isFull ? "are too many to draw" : "without links"}`}
      </span>
      {hidden > 0 && !isFull && (
        <button type="button" className="graph-small" onClick={() => choices.setAgents("all")}>
          Show all
        </button>
      )}
      {chains.slice(0, MOST_CHAINS).map((chain) => (
        <span key={chain.join("~")} className="graph-told-chain">
          <Icon name="schedules" size={14} />
          <span className="visually-hidden">Waits for each other: </span>
          <Chain chain={chain} name={name} onPick={onPick} />
        </span>
      ))}
      {chains.length > MOST_CHAINS && <span className="quiet">and {chains.length - MOST_CHAINS} more chains</span>}
    </div>
  );
}

function Panel({ picked, onPick }: { picked: Picked; onPick: (picked: Partial<Picked>) => void }) {
  if (picked.node === null && picked.edge === null) return null;
  return (
    <aside className="graph-panel" aria-label="Details">
      <button
        type="button"
        className="icon-button graph-panel-close"
        aria-label="Close the details"
        onClick={() => onPick({})}
      >
        <Icon name="close" />
      </button>
      {picked.edge !== null ? (
        <EdgePanel key={picked.edge} pair={picked.edge} onPick={onPick} />
      ) : (
        <NodePanel key={picked.node} id={picked.node ?? ""} onPick={onPick} />
      )}
    </aside>
  );
}
