/** Every place of the page: what follows the session in its address, and its heading. */
export const PLACES = [
  ["", "Fleet"],
  ["chats", "Chats"],
  ["inbox", "Inbox"],
  ["approvals", "Approvals"],
  ["questions", "Questions"],
  ["schedules", "Schedules"],
  ["events", "Events"],
  ["locks", "Locks"],
  ["dead", "Dead letters"],
  ["limits", "Limits"],
  ["tools", "Tools"],
  ["graph", "Graph"],
  ["timeline", "Timeline"],
  ["compare", "Compare"],
  ["log", "Log"],
] as const;

/** The tabs of an agent's page, as in its address and as shown. */
export const AGENT_TABS = [
  ["tasks", "Tasks"],
  ["threads", "Threads"],
  ["mail", "Mailbox"],
  ["usage", "Usage"],
  ["schedules", "Schedules"],
  ["log", "Log"],
  ["definition", "Definition"],
] as const;
