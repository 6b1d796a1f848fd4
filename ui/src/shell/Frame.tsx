import { type ReactNode, useEffect, useLayoutEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { count } from "../parts/format";
import { Icon } from "../parts/Icon";
import type { World } from "../projection/world";
import { usePage, useWorld } from "../state/page";
import { loadSeen, seenKey, seenOf, unreadIn, useSeen } from "../state/seen";
import { useAddress, usePlace } from "./addresses";
import { useAsked } from "./asked";
import { ConnectionBadge } from "./ConnectionBadge";
import { Dialogs } from "./Dialogs";
import { areKeysTaken } from "./dialogState";
import { ModelBadge } from "./ModelBadge";
import { Notices } from "./Notices";
import { PaletteButton } from "./PaletteButton";
import { Past, TravelButton } from "./Past";
import { SessionPicker } from "./SessionPicker";
import { ThemeButton } from "./ThemeButton";
import { useShortcuts } from "./useShortcuts";
import { VIEWS, type View } from "./views";

const GROUPS: Record<View["group"], string> = { team: "Team", steer: "Steer", look: "Look" };

/** What is around every view of a session. */
export function Frame({ children }: { children: ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  useShortcuts();
  useAsked();
  useEffect(() => {
    if (!isOpen) return;
    function close(event: KeyboardEvent) {
      if (event.key !== "Escape" || areKeysTaken()) return;
      event.preventDefault(); // it is not meant for what else Escape ends
      setIsOpen(false);
    }
    addEventListener("keydown", close, { capture: true });
    return () => removeEventListener("keydown", close, { capture: true });
  }, [isOpen]);
  return (
    <div className="frame" data-menu={isOpen ? "open" : "closed"}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <button
          type="button"
          className="icon-button menu-button"
          aria-label="Places"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        >
          <Icon name="menu" />
        </button>
        <SessionPicker />
        <ModelBadge />
        <span className="space" />
        <PaletteButton />
        <ConnectionBadge />
        <TravelButton />
        <ThemeButton />
      </header>
      <Past />
      <Navigation onChoose={() => setIsOpen(false)} />
      <main id="content" className="content" tabIndex={-1}>
        {children}
      </main>
      <Notices />
      <Dialogs />
    </div>
  );
}

function Navigation({ onChoose }: { onChoose: () => void }) {
  const session = usePage(seenKey);
  const isLoaded = usePage((page) => page.isLoaded);
  useLayoutEffect(() => {
    if (isLoaded) loadSeen(session, usePage.getState().live.rooms.values());
  }, [session, isLoaded]);
  const groups = Object.keys(GROUPS) as View["group"][];
  return (
    <nav className="nav" aria-label="Places">
      {groups.map((group) => (
        <div key={group} className="nav-group">
          <p className="nav-title">{GROUPS[group]}</p>
          <ul>
            {VIEWS.filter((view) => view.group === group).map((view) => (
              <li key={view.path}>
                <Place view={view} onChoose={onChoose} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function Place({ view, onChoose }: { view: View; onChoose: () => void }) {
  const address = useAddress()(view.path);
  const isHere = usePlace().view === view.path;
  const badge = useBadge(view.path);
  return (
    <Link href={address} className="nav-link" aria-current={isHere ? "page" : undefined} onClick={onChoose}>
      <Icon name={view.icon} />
      {view.title}
      {badge > 0 && <span className="nav-badge">{count(badge)}</span>}
    </Link>
  );
}

/** How much there waits for the user. */
function useBadge(path: string): number {
  const waiting = useWorld((world) => {
    if (path === "approvals") return world.approvals.size;
    if (path === "questions") return world.questions.size;
    if (path === "dead") return Math.max(world.deadTasks, world.deadMails); // a task and its mail are one letter
    return 0;
  });
  const rooms = useWorld((world) => (path === "chats" ? world.rooms : null));
  const inbox = useWorld((world) => (path === "inbox" ? world.inbox : null));
  const session = usePage(seenKey);
  const seen = useSeen((store) => seenOf(store.seen, session));
  const unread = useMemo(() => (rooms === null ? 0 : unreadIn(rooms, seen)), [rooms, seen]);
  const unreadMail = useMemo(() => (inbox === null ? 0 : unreadMails(inbox)), [inbox]);
  return waiting + unread + unreadMail;
}

function unreadMails(inbox: World["inbox"]): number {
  let total = 0;
  for (const mail of inbox.values()) if (!mail.isRead) total += 1;
  return total;
}
