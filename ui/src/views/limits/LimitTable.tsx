import type { LimitScope, LimitState } from "../../client/client";
import { useActing } from "../../parts/acting";
import { useIsPast } from "../../state/page";
import { aboutLimit, amount, grouped, limitText, shareOf } from "./names";

interface LimitTableProps {
  limits: readonly LimitState[];
  scope: LimitScope;
  onChange: (limit: LimitState) => void;
}

/** All limits with what holds, where that is stated, how much is used, and how often it was reached. */
export function LimitTable({ limits, scope, onChange }: LimitTableProps) {
  const isPast = useIsPast(); // then what is used now says nothing
  return (
    <div className="table-box limits-box">
      <table className="table limits-table">
        <thead>
          <tr>
            <th scope="col">Limit</th>
            <th scope="col">Value</th>
            <th scope="col" className="limits-wide">
              Stated by
            </th>
            {!isPast && (
              <>
                <th scope="col">Used</th>
                <th scope="col" className="limits-wide" title="Since the session was opened">
                  Reached
                </th>
              </>
            )}
            <th scope="col">
              <span className="visually-hidden">Change</span>
            </th>
          </tr>
        </thead>
        {grouped(limits).map(([group, members]) => (
          <tbody key={group}>
            <tr>
              <th scope="rowgroup" colSpan={isPast ? 4 : 6} className="limits-group">
                {group}
              </th>
            </tr>
            {members.map((limit) => (
              <Row key={limit.name} limit={limit} isOwn={limit.source === scope} isPast={isPast} onChange={onChange} />
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

interface RowProps {
  limit: LimitState;
  isOwn: boolean;
  isPast: boolean;
  onChange: (limit: LimitState) => void;
}

function Row({ limit, isOwn, isPast, onChange }: RowProps) {
  const { name, value, source, reached } = limit;
  const { title, outcome } = aboutLimit(name);
  const acting = useActing(outcome);
  return (
    <tr data-own={isOwn}>
      <th scope="row" className="limits-name" title={`${name}. ${outcome}`}>
        {title}
      </th>
      <td className="limits-value">{limitText(name, value)}</td>
      <td className={isOwn ? "limits-wide" : "limits-wide quiet"}>{source}</td>
      {!isPast && (
        <>
          <td>
            <Used limit={limit} />
          </td>
          <td className={reached > 0 ? "limits-wide limits-reached" : "limits-wide quiet"}>
            {reached > 0 ? `${reached} ×` : "–"}
          </td>
        </>
      )}
      <td>
        <button type="button" aria-label={`Change ${title}`} {...acting} onClick={() => onChange(limit)}>
          Change
        </button>
      </td>
    </tr>
  );
}

function Used({ limit }: { limit: LimitState }) {
  if (limit.used === null) return <span className="quiet">–</span>;
  const share = shareOf(limit);
  const text = amount(limit.name, limit.used);
  if (share === null) return <span>{text}</span>;
  const percent = Math.round(share * 100);
  return (
    <span className="limits-used" data-full={share >= 0.9}>
      <progress max={100} value={percent} aria-label={`${percent} % of ${aboutLimit(limit.name).title} used`} />
      <span>{text}</span>
    </span>
  );
}
