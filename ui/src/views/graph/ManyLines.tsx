import { ViewportPortal } from "@xyflow/react";
import { memo, useMemo } from "react";
import { type LinkKind, linkKey } from "../../projection/world";
import { curve, type Drawn } from "./geometry";
import { BEND } from "./Lines";
import { NODE, type Positions } from "./layout";
import { useLights } from "./lights";
import { type Bundle, KINDS } from "./scene";

interface ManyLinesProps {
  readonly bundles: readonly Bundle[];
  readonly positions: Positions;
}

/**
 * Lines that are too many to be elements of their own: all whose first kind is the same are one path. They are for the
 * eye alone; whoever comes nearer, or picks an agent, gets lines that can be picked.
 */
export const ManyLines = memo(function ManyLines({ bundles, positions }: ManyLinesProps) {
  const paths = useMemo(() => pathsOf(bundles, positions), [bundles, positions]);
  return (
    <ViewportPortal>
      <svg className="graph-many" aria-hidden="true">
        {[...paths].map(([kind, { lines, heads }]) => (
          <g key={kind} data-kind={kind}>
            <path className="graph-line" d={lines} />
            <path className="graph-head" d={heads} />
          </g>
        ))}
        <Glows bundles={bundles} positions={positions} />
      </svg>
    </ViewportPortal>
  );
});

/** Those that were used just now. */
function Glows({ bundles, positions }: ManyLinesProps) {
  const lit = useLights((lights) => lights.lit);
  if (lit.size === 0) return null;
  return bundles.flatMap((bundle) => {
    const kind = bundle.kinds.find((each) => lit.has(linkKey({ ...bundle, kind: each })));
    const drawn = kind === undefined ? null : drawnOf(bundle, positions);
    return drawn === null ? [] : <path key={drawn.path} className="graph-glow" data-kind={kind} d={drawn.path} />;
  });
}

/** The lines of each kind, and their heads, as one path each. */
export function pathsOf(
  bundles: readonly Bundle[],
  positions: Positions,
): ReadonlyMap<LinkKind, { lines: string; heads: string }> {
  const found = new Map<LinkKind, Drawn[]>();
  for (const bundle of bundles) {
    const [kind = KINDS[0] as LinkKind] = bundle.kinds;
    const drawn = drawnOf(bundle, positions);
    if (drawn === null) continue;
    const known = found.get(kind);
    if (known === undefined) found.set(kind, [drawn]);
    else known.push(drawn);
  }
  return new Map(
    [...found].map(([kind, all]) => [
      kind,
      { lines: all.map(({ path }) => path).join(""), heads: all.map(({ head }) => head).join("") },
    ]),
  );
}

function drawnOf({ from, to }: Bundle, positions: Positions): Drawn | null {
  const [source, target] = [positions.get(from), positions.get(to)];
  if (source === undefined || target === undefined) return null;
  const middle = { x: NODE.width / 2, y: NODE.height / 2 };
  return curve(
    { x: source.x + middle.x, y: source.y + middle.y },
    { x: target.x + middle.x, y: target.y + middle.y },
    BEND,
  );
}
