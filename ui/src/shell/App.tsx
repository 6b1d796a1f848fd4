import { Suspense, useEffect } from "react";
import { Redirect, Route, Switch, useParams } from "wouter";
import { loadLate } from "../parts/late";
import { Problem } from "../parts/Messages";
import { follow } from "../state/following";
import { usePage } from "../state/page";
import { addressOf } from "./addresses";
import { Boundary } from "./Boundary";
import { Frame } from "./Frame";
import { Refused } from "./Refused";
import { SessionsView } from "./SessionsView";
import { AgentView, VIEWS } from "./views";

/** How long the first view has the line for itself. */
const BEFOREHAND_MS = 500;

export function App() {
  const isRefused = usePage((page) => page.connection === "refused");
  if (isRefused) return <Refused />;
  return (
    <Switch>
      <Route path="/s/:sessionId/*?" component={SessionPages} />
      <Route path="/sessions" component={SessionsView} />
      <Route component={Start} />
    </Switch>
  );
}

/** Somebody with one session wants to see it; everybody else has to choose. */
function Start() {
  const sessions = usePage((page) => page.sessions);
  const [only] = sessions ?? [];
  if (sessions?.length === 1 && only) return <Redirect to={addressOf(only.sessionId)} replace />;
  return <SessionsView />;
}

function SessionPages() {
  const sessionId = decodeURIComponent(useParams<{ sessionId: string }>().sessionId);
  useEffect(() => void follow(sessionId), [sessionId]);
  useViewsBeforehand();
  return (
    <Frame>
      <Boundary>
        <Suspense fallback={<p className="loading">Loading…</p>}>
          <Content sessionId={sessionId} />
        </Suspense>
      </Boundary>
    </Frame>
  );
}

/** Once the first view is there, the others are fetched, so that they open at once. */
function useViewsBeforehand(): void {
  const isLoaded = usePage((page) => page.isLoaded);
  useEffect(() => {
    if (!isLoaded) return;
    const timer = setTimeout(() => void loadLate(), BEFOREHAND_MS);
    return () => clearTimeout(timer);
  }, [isLoaded]);
}

function Content({ sessionId }: { sessionId: string }) {
  const isLoaded = usePage((page) => page.isLoaded && page.sessionId === sessionId);
  const problem = usePage((page) => (page.connection === "open" ? page.problem : null));
  if (problem !== null && !isLoaded) {
    const again = () => void follow(null).then(() => follow(sessionId));
    return <Problem error={problem} onRetry={again} />;
  }
  if (!isLoaded) return <p className="loading">Loading the session…</p>;
  const base = addressOf(sessionId);
  return (
    <Switch>
      <Route path={`${base}/agents/:agentId`} component={AgentView} />
      {VIEWS.map(({ path, component }) => (
        <Route key={path} path={path === "" ? base : `${base}/${path}/:item?`} component={component} />
      ))}
      <Route>
        <Problem error={new Error("There is nothing at this address. Choose a place on the left.")} />
      </Route>
    </Switch>
  );
}
