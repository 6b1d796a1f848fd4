import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Suspense, useState } from "react";
import { afterEach, expect, test } from "vitest";
import { late, loadLate } from "../../src/parts/late";

afterEach(cleanup);

function Counter() {
  const [clicks, setClicks] = useState(0);
  return (
    <button type="button" onClick={() => setClicks(clicks + 1)}>
      {clicks} clicks
    </button>
  );
}

const shown = (View: React.ComponentType) => (
  <Suspense fallback="Loading…">
    <View />
  </Suspense>
);

test("a view whose code is there already is drawn at once", async () => {
  const View = late(async () => ({ default: Counter }));
  await loadLate();
  render(shown(View));
  expect(screen.getByText("0 clicks")).toBeDefined();
});

test("a view whose code is not there yet is drawn when it is", async () => {
  render(shown(late(async () => ({ default: Counter }))));
  expect(screen.getByText("Loading…")).toBeDefined();
  expect(await screen.findByText("0 clicks")).toBeDefined();
});

test("a view does not begin anew when it is drawn again", async () => {
  const View = late(async () => ({ default: Counter }));
  const { rerender } = render(shown(View));
  await userEvent.click(await screen.findByText("0 clicks"));
  rerender(shown(View));
  expect(screen.getByText("1 clicks")).toBeDefined();
});

test("one view that cannot be loaded does not keep the others from it", async () => {
  late(() => Promise.reject<{ default: typeof Counter }>(new Error("The server is away.")));
  const View = late(async () => ({ default: Counter }));
  await loadLate();
  render(shown(View));
  expect(screen.getByText("0 clicks")).toBeDefined();
});
