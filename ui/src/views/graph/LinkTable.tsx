import { useMemo } from "react";
import { useFirst } from "../../parts/First";
import { Empty } from "../../parts/Messages";
import { Ago, Since } from "../../parts/Times";
import { waitedFor } from "../../parts/waited";
import type { Link } from "../../projection/world";
import { useWorldSlowly } from "../../state/slowly";
import type { Picked } from "./choices";
import { counted } from "./kinds";
import { useName } from "./names";
import { pairOf, type Scene, type ShownKind } from "./scene";

interface LinkTableProps {
  readonly scene: Scene;
  readonly onPick: (picked: Partial<Picked>) => void;
}

const MANY = 100;

/** The graph in words: one row for each wait and for each kind of link between two. */
export function LinkTable({ scene, onPick }: LinkTableProps) {
  const name = useName();
  const links = useWorldSlowly((world) => world.links);
  const rows = useMemo(() => rowsOf(scene, links.values()), [scene, links]);
  const { first, more } = useFirst(rows, { step: MANY });
  if (rows.length === 0) {
    return <Empty title="No links">Mails, switches, delegations and events between agents are listed here.</Empty>;
  }
  return (
    <div className="table-box graph-table">
      <table className="table">
        <caption className="visually-hidden">Links between agents</caption>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">What</th>
            <th scope="col">Last</th>
          </tr>
        </thead>
        <tbody>
          {first.map((row) => (
            <tr key={`${pairOf(row)} ${row.isWait ? row.at : row.kind}`}>
              <td>{name(row.from)}</td>
              <td>{name(row.to)}</td>
              <td>
                <button type="button" className="graph-plain" onClick={() => onPick({ edge: pairOf(row) })}>
                  {row.what}
                </button>
              </td>
              <td className="quiet">
                {row.isWait && "for "}
                {row.isWait ? <Since at={row.at} /> : <Ago at={row.at} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {more}
    </div>
  );
}

interface Row {
  readonly from: string;
  readonly to: string;
  readonly kind: ShownKind;
  readonly what: string;
  readonly at: number;
  readonly isWait: boolean;
}

export function rowsOf(scene: Scene, links: Iterable<Link>): Row[] {
  const kinds = new Map(scene.bundles.map((bundle) => [pairOf(bundle), new Set(bundle.kinds)]));
  const used = [...links]
    .filter((link) => kinds.get(pairOf(link))?.has(link.kind))
    .sort((a, b) => b.lastAt - a.lastAt)
    .map(({ from, to, kind, count: times, lastAt }) => ({
      from,
      to,
      kind,
      what: counted(kind, times),
      at: lastAt,
      isWait: false,
    }));
  const waits = scene.waits.flatMap(({ from, to, waits: all }) =>
    all.map((wait) => {
      const what = `waits for ${waitedFor(wait)}`;
      return { from, to, kind: "wait" as const, what, at: wait.since, isWait: true };
    }),
  );
  return [...waits, ...used];
}
