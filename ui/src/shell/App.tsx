import { Suspense, useEffect } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { RpcError } from "../client/client";
import { RpcError } from "../client/errors";
import { loadLate } from "../parts/late";
import { Problem } from "../parts/Messages";
import { follow } from "../state/following";
import { usePage } from "../state/page";
import { addressOf, usePlace } from "./addresses";
import { Boundary } from "./Boundary";
import { Frame } from "./Frame";
import { Refused } from "./Refused";
import { SessionsView } from "./SessionsView";
import { AgentView, VIEWS } from "./views";

/** How long the first view has the line for itself. */
const BEFOREHAND_MS = 500;

export function App() {
  const isRefused = usePage((page) => page.connection === "refused");
  const { sessionId } = usePlace();
  const [location] = useLocation();
  if (isRefused) return <Refused />;
  if (sessionId !== null) return <SessionPages sessionId={sessionId} />;
  return location === "/sessions" ? <SessionsView /> : <Start />;
}

/** Somebody with one session wants to see it; everybody else has to choose. */
function Start() {
  const sessions = usePage((page) => page.sessions);
  const [only] = sessions ?? [];
  if (sessions?.length === 1 && only) return <Redirect to={addressOf(only.sessionId)} replace />;
  return <SessionsView />;
}

function SessionPages({ sessionId }: { sessionId: string }) {
  const { view, item } = usePlace();
  useEffect(() => void follow(sessionId), [sessionId]);
  useViewsBeforehand();
  return (
    <Frame>
      <Boundary place={addressOf(sessionId, view, item ?? "")}>
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
  const ended = usePage((page) => (page.sessionId === sessionId ? page.ended : null));
  if (ended !== null) return <Ended sessionId={sessionId} error={ended} wasThere={isLoaded} />;
  if (!isLoaded) return <p className="loading">Loading the session…</p>;
  return <Viewed />;
}

function Ended({ sessionId, error, wasThere }: { sessionId: string; error: Error; wasThere: boolean }) {
  const isDeleted = wasThere && error instanceof RpcError && error.data.code === "unknown_session";
  const told = isDeleted ? new Error("This session was deleted. Nothing of it is left on the server.") : error;
  const isUnknown = error instanceof RpcError && error.data.code === "unknown_session";
  const why = isUnknown ? `There is no session ${sessionId}. It may have been deleted.` : error.message;
  const told = new Error(wasThere ? `This session has ended: it is not followed any more. ${why}` : why);
  return (
    <>
      <Problem error={told} onRetry={() => void follow(null).then(() => follow(sessionId))} />
      <p>
        <Link href="/sessions">See all sessions</Link>
      </p>
    </>
  );
}

/** The view at the address. */
function Viewed() {
  const { view: path, item, isTooLong } = usePlace();
  const View = path === "agents" ? item && AgentView : VIEWS.find((view) => view.path === path)?.component;
  if (View && !isTooLong) return <View />;
  return <Problem error={new Error("There is nothing at this address. Choose a place on the left.")} />;
}
