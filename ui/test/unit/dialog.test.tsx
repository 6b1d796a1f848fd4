import { act, fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Dialog } from "../../src/parts/Dialog";
import { useIdOf } from "../../src/parts/ids";
import { closeDialog, useDialogs } from "../../src/shell/dialogState";
import { Notices } from "../../src/shell/Notices";
import { useShortcuts } from "../../src/shell/useShortcuts";
import { useNotices } from "../../src/state/actions";
import { usePage } from "../../src/state/page";
import { NewSchedule } from "../../src/views/schedules/NewSchedule";
import { renderAt, setStage } from "./stage";

afterEach(() => {
  closeDialog();
  useNotices.setState({ notices: [] });
});

function shown() {
  const onClose = vi.fn();
  render(
    <Dialog title="Form" onClose={onClose}>
      <input aria-label="Text" />
    </Dialog>,
  );
  return { onClose, beside: screen.getByRole("dialog", { hidden: true }), field: screen.getByLabelText("Text") };
}

describe("a dialog", () => {
  test("is closed by a click beside it", () => {
    const { onClose, beside } = shown();
    fireEvent.pointerDown(beside);
    fireEvent.click(beside);
    expect(onClose).toHaveBeenCalledTimes(1);
  });

  test("stays when a text in it is marked with a pointer that ends beside it", () => {
    const { onClose, beside, field } = shown();
    fireEvent.pointerDown(field);
    fireEvent.click(beside); // the browser clicks what the beginning and the end have in common
    expect(onClose).not.toHaveBeenCalled();
  });
});

function Keys() {
  useShortcuts();
  return <Notices />;
}

test("in the past the key for a new agent says why there can be none", () => {
  setStage([]);
  usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
  renderAt("/s/default", <Keys />);
  fireEvent.keyDown(document.body, { key: "n" });
  expect(useDialogs.getState().open).toBeNull();
  expect(screen.getByText(/This is the past/)).toBeTruthy();
  act(() => usePage.setState({ playhead: null }));
  fireEvent.keyDown(document.body, { key: "n" });
  expect(useDialogs.getState().open).toEqual({ kind: "new-agent" });
});

test("an id stays for as long as that which gets it", () => {
  const ids: string[] = [];
  function Named({ title }: { title: string }) {
    ids.push(useIdOf({ title }));
    return null;
  }
  const { rerender } = render(<Named title="a" />);
  rerender(<Named title="a" />);
  rerender(<Named title="b" />);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[2]).not.toBe(ids[0]);
});

test("a schedule that is made again after a lost connection is the same one", async () => {
  const { calls } = setStage([]);
  render(<NewSchedule onClose={() => {}} agentId="ann" />);
  await userEvent.type(screen.getByLabelText("Prompt"), "Look around.");
  const create = screen.getByRole("button", { name: "Create", hidden: true });
  await userEvent.click(create);
  await userEvent.click(create);
  const [first, second] = calls.map(({ params }) => params.scheduleId);
  expect(first).toBeTruthy();
  expect(second).toBe(first);
});
