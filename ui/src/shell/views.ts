import { type ComponentType, lazy } from "react";

/** A place of the page. `path` is what follows the session in the address. */
export interface View {
  readonly path: string;
  readonly title: string;
  readonly sign: string;
  /** The letter that leads to it after `g`. */
  readonly key: string;
  readonly group: "team" | "steer" | "look";
  readonly component: ComponentType;
}

/** All places, in the order of the navigation. Each is loaded when it is first opened. */
export const VIEWS: readonly View[] = [
  {
    path: "",
    title: "Fleet",
    sign: "▦",
    key: "f",
    group: "team",
    component: lazy(() => import("../views/fleet/FleetView")),
  },
  {
    path: "chats",
    title: "Chats",
    sign: "💬",
    key: "c",
    group: "team",
    component: lazy(() => import("../views/chats/ChatsView")),
  },
  {
    path: "inbox",
    title: "Inbox",
    sign: "✉",
    key: "i",
    group: "team",
    component: lazy(() => import("../views/inbox/InboxView")),
  },
  {
    path: "approvals",
    title: "Approvals",
    sign: "✓",
    key: "a",
    group: "steer",
    component: lazy(() => import("../views/approvals/ApprovalsView")),
  },
  {
    path: "schedules",
    title: "Schedules",
    sign: "⏱",
    key: "s",
    group: "steer",
    component: lazy(() => import("../views/schedules/SchedulesView")),
  },
  {
    path: "events",
    title: "Events",
    sign: "⚡",
    key: "e",
    group: "steer",
    component: lazy(() => import("../views/events/EventsView")),
  },
  {
    path: "locks",
    title: "Locks",
    sign: "🔒",
    key: "k",
    group: "steer",
    component: lazy(() => import("../views/locks/LocksView")),
  },
  {
    path: "dead",
    title: "Dead letters",
    sign: "✕",
    key: "d",
    group: "steer",
    component: lazy(() => import("../views/dead/DeadLettersView")),
  },
  {
    path: "limits",
    title: "Limits",
    sign: "◔",
    key: "l",
    group: "steer",
    component: lazy(() => import("../views/limits/LimitsView")),
  },
  {
    path: "tools",
    title: "Tools",
    sign: "⚒",
    key: "o",
    group: "steer",
    component: lazy(() => import("../views/tools/ToolsView")),
  },
  {
    path: "graph",
    title: "Graph",
    sign: "⌬",
    key: "g",
    group: "look",
    component: lazy(() => import("../views/graph/GraphView")),
  },
  {
    path: "timeline",
    title: "Timeline",
    sign: "≡",
    key: "t",
    group: "look",
    component: lazy(() => import("../views/timeline/TimelineView")),
  },
  {
    path: "log",
    title: "Log",
    sign: "☰",
    key: "h",
    group: "look",
    component: lazy(() => import("../views/log/LogView")),
  },
];

/** The page of one agent has its own place, beside the navigation. */
export const AgentView = lazy(() => import("../views/agent/AgentView"));
