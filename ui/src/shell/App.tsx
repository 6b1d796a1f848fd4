import { Suspense, useEffect } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { RpcError } from "../client/client";
import { loadLate } from "../parts/late";
import { Problem } from "../parts/Messages";
import { follow } from "../state/following";
import { nameIn } from "../state/names";
import { usePage, useWorld } from "../state/page";
import { addressOf, type Place, usePlace } from "./addresses";
import { Boundary } from "./Boundary";
import { Frame } from "./Frame";
import { Refused } from "./Refused";
import { SessionsView } from "./SessionsView";
import { AgentView, VIEWS } from "./views";

const NAME = "AI Whisperer";
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
  const place = usePlace();
  const { view, item } = place;
  useWindowTitle(place);
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

/** The window is called after what is shown in it. */
function useWindowTitle({ view, item }: Place): void {
  const agent = useWorld(({ agents }) => (view === "agents" && item !== undefined ? nameIn(agents, item) : undefined));
  const place = agent ?? VIEWS.find(({ path }) => path === view)?.title;
  useEffect(() => {
    document.title = place === undefined ? NAME : `${place} – ${NAME}`;
    return () => {
      document.title = NAME;
    };
  }, [place]);
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
  const isUnknown = error instanceof RpcError && error.data.code === "unknown_session";
  const why = wasThere
    ? "This session was deleted. Nothing of it is left on the server."
    : `There is no session ${sessionId}. It may have been deleted.`;
  const told = isUnknown ? new Error(why) : error;
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
