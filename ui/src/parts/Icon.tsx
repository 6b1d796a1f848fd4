/** Line drawings on a field of 24 by 24. */
const PATHS = {
  fleet: "M4 5h7v6H4zM13 5h7v6h-7zM4 13h7v6H4zM13 13h7v6h-7z",
  chats: "M4 5h16v11H10l-5 4v-4H4z",
  inbox: "M3 6h18v12H3zM3 6l9 7 9-7",
  approvals: "M12 3l7 3v6c0 4-3 7-7 9-4-2-7-5-7-9V6zM9 12l2 2 4-4",
  questions: "M12 4a8 8 0 1 0 .01 0M10 10a2 2 0 1 1 3 2c-1 .6-1 1-1 2M12 16.5h.01",
  schedules: "M12 4a8 8 0 1 0 .01 0M12 8v4l3 2",
  events: "M13 3L5 14h6l-1 7 8-11h-6z",
  locks: "M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3",
  dead: "M4 8h16v12H4zM4 8l2-4h12l2 4M10 12l4 4M14 12l-4 4",
  limits: "M4 16a8 8 0 1 1 16 0M12 16l4-5",
  tools: "M14 6a4 4 0 0 0 5 5l-9 9-4-4 9-9a4 4 0 0 0-1-1",
  graph:
    "M6 6m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M18 8m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M10 18m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M8 6.5l8 1M7 8l2.4 8M16.6 9.5l-5 7",
  timeline: "M4 6h9M8 12h12M4 18h6M14 18h4",
  compare: "M4 5h7v5H4zM4 14h5v5H4zM15 5h5v5h-5zM13 14h7v5h-7z",
  log: "M5 6h14M5 10h14M5 14h14M5 18h9",
  menu: "M4 7h16M4 12h16M4 17h16",
  search: "M11 5a6 6 0 1 0 .01 0M16 16l4 4",
  sun: "M12 8a4 4 0 1 0 .01 0M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M19 14a8 8 0 1 1-9-10 6 6 0 0 0 9 10z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  play: "M7 5l12 7-12 7z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  sleep: "M19 14a8 8 0 1 1-9-10 6 6 0 0 0 9 10z",
  idle: "M12 5a7 7 0 1 0 .01 0",
  done: "M5 13l4 4L19 7",
  again: "M19 12a7 7 0 1 1-2-5M19 4v4h-4",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  back: "M15 5l-7 7 7 7",
  forward: "M9 5l7 7-7 7",
  history: "M4 12a8 8 0 1 0 3-6M4 4v4h4M12 8v4l3 2",
  fork: "M7 4v16M7 13c0-4 10-2 10-7M14 8l3-3 3 3",
  send: "M4 12l16-8-5 16-3-7z",
  user: "M12 4a4 4 0 1 0 .01 0M4 21c1-5 4-7 8-7s7 2 8 7",
  agent: "M5 9h14v9H5zM12 5v4M9 13h.01M15 13h.01M2 12v3M22 12v3",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** A sign beside a word; it says nothing to a screen reader. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
