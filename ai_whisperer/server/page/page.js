"use strict";
// A live view of one session: its agents and the latest of what happens. It goes on by itself when the server is back.

const LINES = 500;
const byId = (id) => document.getElementById(id);
const waiting = new Map();
let socket = null;
let nextId = 1;
let cursor = null;
let sessionId = new URLSearchParams(location.search).get("session");
let refreshing = null;

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.onopen = begin;
  socket.onmessage = (event) => take(JSON.parse(event.data));
  socket.onclose = () => {
    byId("connection").textContent = "not connected, trying again";
    waiting.clear();
    setTimeout(connect, 1000);
  };
}

function call(method, params) {
  const id = nextId++;
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function take(message) {
  if (message.method !== undefined) {
    cursor = message.params.seq;
    addLine(message);
    refreshSoon();
    return;
  }
  const caller = waiting.get(message.id);
  waiting.delete(message.id);
  if (caller !== undefined) {
    if (message.error === undefined) caller.resolve(message.result);
    else caller.reject(new Error(message.error.message));
  }
}

async function begin() {
  byId("connection").textContent = "connected";
  const { sessions } = await call("session.list", {});
  if (!sessions.some((each) => each.sessionId === sessionId)) {
    sessionId = sessions.length > 0 ? sessions[0].sessionId : null;
    cursor = null;
  }
  const choices = sessions.map((each) => new Option(each.title || each.sessionId, each.sessionId));
  byId("session").replaceChildren(...choices);
  if (sessionId === null) return;
  byId("session").value = sessionId;
  const params = cursor === null ? { sessionId, after: 0 } : { sessionId, after: cursor };
  await call("events.subscribe", params);
  await refresh();
}

function refreshSoon() {
  refreshing ??= setTimeout(() => { refreshing = null; refresh(); }, 200);
}

async function refresh() {
  const { agents } = await call("async.getAgentStates", { sessionId });
  const rows = Object.entries(agents).map(([id, agent]) => {
    const row = document.createElement("tr");
    const progress = agent.progress_percent === null ? "" : `${Math.round(agent.progress_percent)} % ${agent.progress_note}`;
    const tokens = (agent.usage.input_tokens ?? 0) + (agent.usage.output_tokens ?? 0);
    for (const text of [id, agent.state, agent.current_task ?? "", progress, agent.queue_size, tokens]) {
      row.insertCell().textContent = text;
    }
    return row;
  });
  byId("agents").replaceChildren(...rows);
  byId("empty").hidden = rows.length > 0;
}

function addLine({ method, params }) {
  const line = document.createElement("li");
  const said = params.result?.final ?? params.error?.message ?? params.subject ?? params.text ?? params.note ?? params.to ?? "";
  line.textContent = `${params.seq}  ${method}  ${params.agentId ?? params.sender ?? ""}  ${said}`.slice(0, 300);
  byId("log").prepend(line);
  while (byId("log").childElementCount > LINES) byId("log").lastElementChild.remove();
}

byId("session").onchange = (event) => {
  sessionId = event.target.value;
  cursor = null;
  byId("log").replaceChildren();
  socket.close();
};

history.replaceState(null, "", location.pathname); // the token is kept in a cookie from here on
connect();
