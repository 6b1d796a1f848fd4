import type { ComponentType } from "react";
import type { IconName } from "../parts/Icon";
import { late } from "../parts/late";

/** A place of the page. `path` is what follows the session in the address. */
export interface View {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** The letter that leads to it after `g`. */
  readonly key: string;
  readonly group: "team" | "steer" | "look";
  readonly component: ComponentType;
}

/** All places, in the order of the navigation. Each is loaded when it is first opened, or when there is time. */
export const VIEWS: readonly View[] = [
  {
    path: "",
    title: "Fleet",
    icon: "fleet",
    key: "f",
    group: "team",
    component: late(() => import("../views/fleet/FleetView")),
  },
  {
    path: "chats",
    title: "Chats",
    icon: "chats",
    key: "c",
    group: "team",
    component: late(() => import("../views/chats/ChatsView")),
  },
  {
    path: "inbox",
    title: "Inbox",
    icon: "inbox",
    key: "i",
    group: "team",
    component: late(() => import("../views/inbox/InboxView")),
  },
  {
    path: "approvals",
    title: "Approvals",
    icon: "approvals",
    key: "a",
    group: "steer",
    component: late(() => import("../views/approvals/ApprovalsView")),
  },
  {
    path: "questions",
    title: "Questions",
    icon: "questions",
    key: "q",
    group: "steer",
    component: late(() => import("../views/questions/QuestionsView")),
  },
  {
    path: "schedules",
    title: "Schedules",
    icon: "schedules",
    key: "s",
    group: "steer",
    component: late(() => import("../views/schedules/SchedulesView")),
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    key: "e",
    group: "steer",
    component: late(() => import("../views/events/EventsView")),
  },
  {
    path: "locks",
    title: "Locks",
    icon: "locks",
    key: "k",
    group: "steer",
    component: late(() => import("../views/locks/LocksView")),
  },
  {
    path: "dead",
    title: "Dead letters",
    icon: "dead",
    key: "d",
    group: "steer",
    component: late(() => import("../views/dead/DeadLettersView")),
  },
  {
    path: "limits",
    title: "Limits",
    icon: "limits",
    key: "l",
    group: "steer",
    component: late(() => import("../views/limits/LimitsView")),
  },
  {
    path: "tools",
    title: "Tools",
    icon: "tools",
    key: "o",
    group: "steer",
    component: late(() => import("../views/tools/ToolsView")),
  },
  {
    path: "graph",
    title: "Graph",
    icon: "graph",
    key: "g",
    group: "look",
    component: late(() => import("../views/graph/GraphView")),
  },
  {
    path: "timeline",
    title: "Timeline",
    icon: "timeline",
    key: "t",
    group: "look",
    component: late(() => import("../views/timeline/TimelineView")),
  },
  {
    path: "compare",
    title: "Compare",
    icon: "compare",
    key: "v",
    group: "look",
    component: late(() => import("../views/compare/CompareView")),
  },
  {
    path: "log",
    title: "Log",
    icon: "log",
    key: "h",
    group: "look",
    component: late(() => import("../views/log/LogView")),
  },
];

/** The page of one agent has its own place, beside the navigation. */
export const AgentView = late(() => import("../views/agent/AgentView"));
