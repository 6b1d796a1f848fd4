import type { Edge, EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { count, duration } from "../../parts/format";
import { Icon, type IconName } from "../../parts/Icon";
import { useShownNow } from "../../parts/Times";
import { type LinkKind, linkKey } from "../../projection/world";
import { useWorld } from "../../state/page";
import { useIsFar } from "./AgentNode";
import { curve } from "./geometry";
import { KIND_ICONS, WAIT_ICONS } from "./kinds";
import type { Point } from "./layout";
import { useLights } from "./lights";
import { type Bundle, countsOf, KINDS } from "./scene";
import type { WaitLine } from "./waits";

export type LinkEdge = Edge<{ bundle: Bundle }, "link">;
export type WaitEdge = Edge<{ line: WaitLine }, "wait">;

export const BEND = 26;
const LANE = 5;
const WAIT_BEND = 62;
const WAIT_HEAD = 20;

/** Everything that went from one to another: a lane for each kind, and how often. From far away one line is enough. */
export const LinkLine = memo(function LinkLine(props: EdgeProps<LinkEdge>) {
  const { data, sourceX, sourceY, targetX, targetY } = props;
  const isFar = useIsFar();
  const bundle = data?.bundle as Bundle;
  const lanes = bundle.kinds.slice(0, isFar ? 1 : bundle.kinds.length).map((kind, lane) => ({
    kind,
    drawn: curve({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, BEND + lane * LANE),
  }));
  const outer = lanes.at(-1);
  if (outer === undefined) return null;
  return (
    <>
      {lanes.map(({ kind, drawn }) => (
        <g key={kind} data-kind={kind}>
          <path className="graph-line" d={drawn.path} />
          <path className="graph-head" d={drawn.head} />
          <Light kinds={isFar ? bundle.kinds : [kind]} bundle={bundle} path={drawn.path} />
        </g>
      ))}
      <path className="graph-touch" d={outer.drawn.path} />
      {!isFar && <Counts at={outer.drawn.label} bundle={bundle} />}
    </>
  );
});

function Counts({ at, bundle }: { at: Point; bundle: Bundle }) {
  const counts = useWorld((world) => countsOf(world.links, bundle)).split(",");
  const parts = bundle.kinds.map((kind) => ({
    icon: KIND_ICONS[kind],
    text: count(Number(counts[KINDS.indexOf(kind)])),
    kind,
  }));
  return <Label at={at} parts={parts} />;
}

/**
 * A light that runs along a lane when one of these kinds is used. Where all kinds share one line, which is when there
 * may be hundreds of lines in sight, it stands still: to move it would be to paint all of them for each frame.
 */
function Light({ kinds, bundle, path }: { kinds: readonly LinkKind[]; bundle: Bundle; path: string }) {
  const until = useLights(({ lit }) => {
    if (lit.size === 0) return undefined;
    for (const kind of kinds) {
      const found = lit.get(linkKey({ from: bundle.from, to: bundle.to, kind }));
      if (found !== undefined) return found;
    }
    return undefined;
  });
  const isFar = useIsFar();
  if (until === undefined) return null;
  return <path key={until} className={isFar ? "graph-glow" : "graph-light"} d={path} pathLength={1} />;
}

/** One who waits for another: thick and dashed, so that waits that follow each other are seen as one path. */
export const WaitArrow = memo(function WaitArrow(props: EdgeProps<WaitEdge>) {
  const { data, sourceX, sourceY, targetX, targetY } = props;
  const isFar = useIsFar();
  const line = data?.line as WaitLine;
  const { path, head, label } = curve({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, WAIT_BEND, WAIT_HEAD);
  return (
    <g data-kind="wait">
      <path className="graph-line" d={path} />
      <path className="graph-head" d={head} />
      <path className="graph-touch" d={path} />
      {!isFar && <WaitLabel at={label} line={line} />}
    </g>
  );
});

function WaitLabel({ at, line }: { at: Point; line: WaitLine }) {
  const now = useShownNow();
  const [first] = line.waits;
  if (first === undefined) return null;
  const seconds = Math.max(0, Math.floor(now - first.since));
  const more = line.waits.length > 1 ? ` (${line.waits.length})` : "";
  const name = first.kind === "lock" || first.kind === "resource" ? `${shortened(first.target)} ` : "";
  const text = `${name}${seconds < 1 ? "0 s" : duration(seconds)}${more}`;
  return <Label at={at} parts={[{ icon: WAIT_ICONS[first.kind], text, kind: "wait" }]} />;
}

function shortened(text: string): string {
  return text.length > 18 ? `${text.slice(0, 17)}…` : text;
}

const ICON = 12;
const DIGIT = 6.6;

function Label({ at, parts }: { at: Point; parts: readonly { icon: IconName; text: string; kind: string }[] }) {
  const widths = parts.map(({ text }) => ICON + 4 + text.length * DIGIT + 6);
  const width = widths.reduce((sum, each) => sum + each, 4);
  let x = -width / 2 + 4;
  return (
    <g className="graph-label" transform={`translate(${at.x} ${at.y})`}>
      <rect x={-width / 2} y={-9} width={width} height={18} rx={9} />
      {parts.map(({ icon, text, kind }, index) => {
        const left = x;
        x += widths[index] ?? 0;
        return (
          <g key={kind} data-kind={kind} transform={`translate(${left} 0)`}>
            <g transform={`translate(0 ${-ICON / 2})`}>
              <Icon name={icon} size={ICON} />
            </g>
            <text x={ICON + 3} y={4}>
              {text}
            </text>
          </g>
        );
      })}
    </g>
  );
}
