import type { GateState, ProviderAccount } from "../../client/client";
import { count } from "../../parts/format";
import { Loaded } from "../../parts/Messages";
import { Until } from "../../parts/Times";
import { useAnswer } from "../../state/answers";
import { usePage } from "../../state/page";
import { useRefreshing } from "../../state/refreshing";

const EVERY_MS = 2000;

/** Which of the page's colours stands for each state. */
const COLOURS: Readonly<Record<GateState, "active" | "idle" | "paused" | "stopped">> = {
  open: "active",
  limited: "idle",
  held: "paused",
  down: "stopped",
};

/** The accounts of providers that the session asks its models through; there is nothing to show before it does. */
export function Accounts() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("providers.list", { sessionId }, ({ name }) => name.startsWith("provider."));
  useRefreshing(answer.again, EVERY_MS);
  return (
    <Loaded answer={answer}>
      {({ accounts }) =>
        accounts.length > 0 && (
          <section className="limits-part" aria-label="Providers">
            <h2>Providers</h2>
            <p className="quiet">
              All sessions of the server share these accounts. How many requests may be under way at once is found out.
            </p>
            <ul className="limits-list">
              {accounts.map((account) => (
                <Line key={account.account} account={account} />
              ))}
            </ul>
          </section>
        )
      }
    </Loaded>
  );
}

function Line({ account }: { account: ProviderAccount }) {
  const { state, underWay, allowed, waiting, retryAt, reason, requests, refusals, outages } = account;
  return (
    <li>
      <span>
        <strong>{account.account}</strong>{" "}
        <span className="state" data-state={COLOURS[state]}>
          {state}
        </span>{" "}
        {retryAt !== null && (
          <span className="quiet">
            next request <Until at={retryAt} />
          </span>
        )}
      </span>
      <span className="quiet">
        {count(underWay)} of {count(allowed)} under way, {count(waiting)} wait; {count(requests)} requests,{" "}
        {count(refusals)} refused, {count(outages)} found it down
      </span>
      {reason !== "" && <span className="quiet">{reason}</span>}
    </li>
  );
}
