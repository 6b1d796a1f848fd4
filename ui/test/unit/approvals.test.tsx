import { act, cleanup, fireEvent, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ApprovalRecord } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { tell, usePage } from "../../src/state/page";
import ApprovalsView from "../../src/views/approvals/ApprovalsView";
import { argumentsOf } from "../../src/views/approvals/arguments";
import { decidedBy } from "../../src/views/approvals/decided";
import { withKept } from "../../src/views/approvals/standing";
import { note, renderAt, setStage } from "./stage";

afterEach(cleanup);

const RECORD: ApprovalRecord = {
  sessionId: "default",
  approvalId: "step1",
  agentId: "ann",
  taskId: "task1",
  tool: "delete_file",
  arguments: '{"path": "notes.txt", "force": true}',
  digest: "abc",
  state: "pending",
  requestedAt: 1_000,
  decidedAt: null,
  decidedBy: null,
  reason: "",
};
const requested = () =>
  note("approval.requested", {
    agentId: "ann",
    taskId: "task1",
    approvalId: "step1",
    tool: "delete_file",
    digest: "abc",
  });

function stage(record: ApprovalRecord = RECORD) {
  return setStage([note("agent.created", { agentId: "ann", name: "Ann", description: "" }), requested()], {
    "approval.list": () => ({ approvals: [record] }),
    "approval.get": () => record,
    "approval.approve": () => ({ ...RECORD, state: "approved" }),
    "approval.refuse": () => ({ ...RECORD, state: "refused" }),
  });
}

const decisions = (calls: { method: string; params: Record<string, unknown> }[]) =>
  calls.filter(({ method }) => method !== "approval.list" && method !== "approval.get");

test("a call is approved with the digest of what was shown", async () => {
  const { calls } = stage();
  renderAt("/s/default/approvals", <ApprovalsView />);
  expect(await screen.findByText("notes.txt")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(decisions(calls)).toEqual([
    {
      method: "approval.approve",
      params: { sessionId: "default", approvalId: "step1", digest: "abc", reason: "" },
    },
  ]);
});

test("a call is refused by the button for it, with the reason that was written; Enter in the reason decides nothing", async () => {
  const { calls } = stage();
  renderAt("/s/default/approvals", <ApprovalsView />);
  await screen.findByText("notes.txt");
  await userEvent.type(screen.getByLabelText("Reason for the decision on delete_file"), "Keep it{Enter}");
  await userEvent.keyboard("{Control>}{Enter}{/Control}{Shift>}{Enter}{/Shift}");
  expect(decisions(calls)).toEqual([]);
  await userEvent.tab();
  expect(document.activeElement?.textContent).toBe("Refuse");
  await userEvent.keyboard("{Enter}");
  expect(decisions(calls)).toEqual([
    { method: "approval.refuse", params: { sessionId: "default", approvalId: "step1", reason: "Keep it" } },
  ]);
});

describe("what is decided", () => {
  const two = ["step1", "step2"];
  const ask = (approvalId: string) =>
    note("approval.requested", { agentId: "ann", taskId: "t", approvalId, tool: approvalId, digest: "abc" });
  const approved = (approvalId: string) =>
    note("approval.approved", {
      agentId: "ann",
      taskId: "t",
      approvalId,
      tool: approvalId,
      decidedBy: "olga",
      reason: "",
    });
  const names = () => screen.getAllByRole("article").map((card) => card.getAttribute("aria-label"));

  /** As it is when notifications come in: the world takes them, then those who listen are told. */
  function happens(...notes: ReturnType<typeof note>[]) {
    act(() => {
      usePage.setState(({ live }) => ({ live: reduce(live, notes) }));
      tell(notes);
    });
  }

  function stageOfTwo() {
    const set = setStage(two.map(ask), {
      "approval.list": () => ({ approvals: [] }),
      "approval.get": ({ approvalId }) => ({ ...RECORD, approvalId }),
      "approval.approve": ({ approvalId }) => {
        queueMicrotask(() => happens(approved(approvalId)));
        return { ...RECORD, state: "approved" };
      },
    });
    renderAt("/s/default/approvals", <ApprovalsView />);
    return set;
  }

  beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());

  test("stays in its place with the decision for a moment, and then makes room", async () => {
    stageOfTwo();
    await screen.findAllByText("notes.txt");
    happens(approved("step1"));
    expect(names()).toEqual(["step1 of ann", "step2 of ann"]);
    const [first, second] = screen.getAllByRole("article").map((card) => within(card));
    expect(first?.getByText("approved")).toBeTruthy();
    expect(first?.getByText(/by olga/)).toBeTruthy();
    expect(first?.queryByRole("button", { name: "Approve" })).toBeNull();
    expect(second?.getByRole("button", { name: "Approve" })).toBeTruthy();
    expect(screen.getByText("1 to decide")).toBeTruthy();
    act(() => void vi.advanceTimersByTime(10_000));
    expect(names()).toEqual(["step2 of ann"]);
  });

  test("by keyboard keeps the focus: the same key again decides nothing else", async () => {
    const { calls } = stageOfTwo();
    await screen.findAllByText("notes.txt");
    const [card, other] = screen.getAllByRole("article");
    act(() =>
      within(card as HTMLElement)
        .getByRole("button", { name: "Approve" })
        .focus(),
    );
    await userEvent.keyboard("{Enter}");
    await screen.findByText("approved");
    expect(document.activeElement).toBe(card);
    await userEvent.keyboard("{Enter}aar ");
    expect(decisions(calls)).toHaveLength(1);
    await userEvent.keyboard("{ArrowDown}");
    expect(document.activeElement).toBe(other);
  });

  test("by a key that is held down is one call", async () => {
    const { calls } = stageOfTwo();
    await screen.findAllByText("notes.txt");
    const [, card] = screen.getAllByRole("article") as [HTMLElement, HTMLElement];
    act(() => card.focus());
    fireEvent.keyDown(card, { key: "a", repeat: true });
    expect(decisions(calls)).toEqual([]);
  });

  test("is not kept by whoever looks at the past", async () => {
    stageOfTwo();
    await screen.findAllByText("notes.txt");
    act(() => usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } })));
    happens(approved("step1"));
    act(() => usePage.setState({ playhead: null }));
    expect(names()).toEqual(["step2 of ann"]);
  });

  test("keeps its place among those that come and go", () => {
    const each = (approvalId: string) => ({ ...requested().params, approvalId, at: 1 }) as never;
    const ids = (before: string, waiting: string) =>
      withKept([...before].map(each), [...waiting].map(each), ({ approvalId }) => approvalId < "x")
        .map(({ approvalId }) => approvalId)
        .join("");
    expect(ids("abc", "bc")).toBe("abc");
    expect(ids("abc", "acd")).toBe("abcd");
    expect(ids("abc", "d")).toBe("abcd");
    expect(ids("axb", "a")).toBe("ab"); // x is not kept
    expect(ids("", "ab")).toBe("ab");
  });
});

test("on a card A approves, but in the field for the reason it is a letter", async () => {
  const { calls } = stage();
  renderAt("/s/default/approvals", <ApprovalsView />);
  await screen.findByText("notes.txt");
  await userEvent.type(screen.getByLabelText("Reason for the decision on delete_file"), "a");
  expect(decisions(calls)).toEqual([]);
  act(() => screen.getByRole("article", { name: "delete_file of ann" }).focus());
  await userEvent.keyboard("a");
  expect(decisions(calls)).toMatchObject([{ method: "approval.approve", params: { reason: "a" } }]);
});

test("what was not seen, or is another call, cannot be approved", async () => {
  stage({ ...RECORD, digest: "another" });
  renderAt("/s/default/approvals", <ApprovalsView />);
  expect((screen.getByRole("button", { name: "Approve" }) as HTMLButtonElement).disabled).toBe(true);
  expect(await screen.findByRole("alert")).toBeTruthy();
  expect((screen.getByRole("button", { name: "Approve" }) as HTMLButtonElement).disabled).toBe(true);
});

test("in the past nothing can be decided", async () => {
  stage();
  usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
  renderAt("/s/default/approvals", <ApprovalsView />);
  await screen.findByText("notes.txt");
  for (const name of ["Approve", "Refuse"]) {
    expect((screen.getByRole("button", { name }) as HTMLButtonElement).disabled).toBe(true);
  }
});

test("of many that wait some are shown, the others at a click, and each can be approved", async () => {
  const ids = Array.from({ length: 650 }, (_, index) => `step${index}`);
  const { calls } = setStage(
    ids.map((approvalId) =>
      note("approval.requested", { agentId: "ann", taskId: "t", approvalId, tool: approvalId, digest: "abc" }),
    ),
    {
      "approval.list": () => ({ approvals: [] }),
      "approval.get": ({ approvalId }) => ({ ...RECORD, approvalId }),
      "approval.approve": () => ({ ...RECORD, state: "approved" }),
    },
  );
  renderAt("/s/default/approvals/step620", <ApprovalsView />);
  expect((await screen.findAllByRole("article"))[0]?.getAttribute("aria-label")).toBe("step620 of ann");
  cleanup();
  renderAt("/s/default/approvals", <ApprovalsView />);
  await screen.findAllByText("notes.txt");
  expect(screen.getAllByRole("article")).toHaveLength(30);
  await userEvent.click(screen.getByRole("button", { name: "Show 30 more of 620" }));
  const last = within(screen.getByRole("article", { name: "step59 of ann" }));
  await last.findByText("notes.txt");
  await userEvent.click(last.getByRole("button", { name: "Approve" }));
  expect(decisions(calls)).toMatchObject([{ method: "approval.approve", params: { approvalId: "step59" } }]);
});

test("raw arguments are exactly those that the model wrote", async () => {
  stage();
  const { history } = renderAt("/s/default/approvals?arguments=raw", <ApprovalsView />);
  expect(await screen.findByText(RECORD.arguments)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Pretty" }));
  expect(history?.at(-1)).toBe("/s/default/approvals");
});

test("decisions are listed with who made them and why", async () => {
  setStage([], {
    "approval.list": ({ approvalState }) => ({
      approvals:
        approvalState === null
          ? [{ ...RECORD, state: "refused", decidedAt: 1_001, decidedBy: "olga", reason: "No." }]
          : [],
    }),
  });
  renderAt("/s/default/approvals", <ApprovalsView />);
  const decided = await screen.findByRole("region", { name: "Decided" });
  expect(await within(decided).findByText("No.")).toBeTruthy();
  expect(within(decided).getByText(/by olga/)).toBeTruthy();
  expect(screen.getByText("Nothing waits for your decision.")).toBeTruthy();
});

test("the empty page says that other tasks of an agent wait behind one that waits for a person", () => {
  setStage([], { "approval.list": () => ({ approvals: [] }) });
  renderAt("/s/default/approvals", <ApprovalsView />);
  expect(screen.getByText(/other tasks of the agent wait in its queue/).textContent).toContain("max_concurrent_tasks");
});

test("arguments that are no object are shown raw only", () => {
  expect(argumentsOf('{"a": 1, "b": "x\\ny"}')).toEqual([
    { name: "a", value: "1" },
    { name: "b", value: "x\ny" },
  ]);
  expect(argumentsOf("[1]")).toBeNull();
  expect(argumentsOf("{")).toBeNull();
});

test("what was decided later had not been decided then", () => {
  const done = { ...RECORD, state: "approved" as const, decidedAt: 50 };
  expect(decidedBy([done, RECORD], 60, "")).toEqual([done]);
  expect(decidedBy([done], 40, "")).toEqual([]);
  expect(decidedBy([done], 60, "refused")).toEqual([]);
});
