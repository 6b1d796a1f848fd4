import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test } from "vitest";
import type { McpServerStatus, ServerInfo, ToolEntry } from "../../src/client/client";
import { useDialogs } from "../../src/shell/dialogState";
import { usePage } from "../../src/state/page";
import { TemplateChoice } from "../../src/steer/TemplateChoice";
import { fieldsOf, groupTools } from "../../src/views/tools/describe";
import ToolsView from "../../src/views/tools/ToolsView";
import { XSS } from "../xss";
import { renderAt, setStage } from "./stage";

afterEach(cleanup);

const TOOL: ToolEntry = {
  name: "read_file",
  kind: "machine",
  source: "",
  description: "Read a file.",
  idempotent: "always",
  needsApproval: "sometimes",
  touches: ["file:{path}"],
  untrusted: true,
  error: null,
};
const BROKEN = { ...TOOL, name: "mine", source: "tools/mine.py", error: "It does not import: no module named cows." };

test("tools are told by kind, and a file that cannot be used with its error whatever the filter", () => {
  const sent = { ...TOOL, name: "send_mail", kind: "coordination" as const };
  const { broken, usable } = groupTools([TOOL, BROKEN, sent], "mail");
  expect(broken).toEqual([BROKEN]);
  expect(usable).toEqual([["coordination", [sent]]]);
});

test("a tool tells whether a person is asked, what it touches and where it is from", async () => {
  setStage([], { "tool.list": () => ({ tools: [TOOL, BROKEN] }) });
  renderAt("/s/default/tools", <ToolsView />);
  for (const text of ["read_file", "some calls", "file:{path}", "brings outside text", "the package"])
    expect(await screen.findByText(text)).toBeTruthy();
  expect(screen.getByText(/no module named cows/)).toBeTruthy();
});

test("whatever a template says is text, on the page and where one is chosen", async () => {
  const templates = XSS.map((text, number) => ({
    ...{ name: `${text} ${number}`, path: text, description: text, aliases: [], format: "own" },
    error: number % 2 === 0 ? null : text,
  }));
  setStage([], { "template.list": () => ({ templates }) as never });
  const { container } = renderAt("/s/default/tools?tab=templates", <ToolsView />);
  await screen.findByText(templates[0]?.name ?? "");
  render(<TemplateChoice templates={templates as never} chosen="" onChoose={() => {}} />);
  expect(container.textContent).toContain("<img src=x onerror=alert(1)>");
  const made = "script, img, iframe, object, embed, video, audio, form, style, a, math, marquee, [onload], [onerror]";
  expect([...document.body.querySelectorAll(made)].map(({ outerHTML }) => outerHTML)).toEqual([]);
});

const SERVER: McpServerStatus = {
  name: "files",
  target: "npx files",
  state: "failed",
  tools: [],
  problems: ["The tool x was left out."],
  error: "It ended at once.",
  retryAt: null,
};

test("an MCP server that failed says why, and can be started", async () => {
  let isStarted = false;
  const { calls } = setStage([], {
    "mcp.list": () => ({ servers: [isStarted ? { ...SERVER, state: "ready", error: null } : SERVER] }),
    "mcp.start": () => {
      isStarted = true;
      return SERVER;
    },
  });
  renderAt("/s/default/tools?tab=mcp", <ToolsView />);
  expect(await screen.findByText("It ended at once.")).toBeTruthy();
  expect(screen.getByText("The tool x was left out.")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Start" }));
  expect(await screen.findByText("ready")).toBeTruthy();
  expect(calls.find(({ method }) => method === "mcp.start")?.params).toEqual({ sessionId: "default", name: "files" });
});

test("a template is shown with its definition, and an agent can be made of it", async () => {
  const entry = { name: "coder", description: "Writes code", kind: "built-in" as const, path: "", error: null };
  setStage([], {
    "template.list": () => ({ templates: [entry, { ...entry, name: "bad", path: "bad.md", error: "No prompt." }] }),
    "template.get": ({ name }) => ({
      name,
      source: "coder.md",
      definition: { prompt: "Write <b>code</b>." },
      ignored: [],
    }),
  });
  const { history } = renderAt("/s/default/tools?tab=templates", <ToolsView />);
  await userEvent.click(await screen.findByRole("button", { name: /coder/ }));
  expect(history.at(-1)).toContain("template=coder");
  expect(await screen.findByText("Write <b>code</b>.")).toBeTruthy();
  expect(screen.getByText("No prompt.")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "New agent from it" }));
  expect(useDialogs.getState().open).toEqual({ kind: "new-agent", template: "coder" });
});

test("a definition shows what it says and nothing else", () => {
  const fields = fieldsOf({ prompt: "Go.", tools: ["a", "b"], aliases: [], limits: {}, model: "m", retry: {} });
  expect(fields.map(({ name, text }) => [name, text])).toEqual([
    ["tools", "a, b"],
    ["model", "m"],
    ["prompt", "Go."],
  ]);
});

test("a server without a sandbox warns", async () => {
  setStage([]);
  const info = { sandbox: "none", version: "1", principal: "local", model: "m", maxFrameBytes: 1, startedAt: 1 };
  usePage.setState({ server: info as ServerInfo });
  renderAt("/s/default/tools?tab=sandbox", <ToolsView />);
  expect(screen.getByText(/Nothing holds the programs of agents/)).toBeTruthy();
});
