import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Since } from "../../src/parts/Times";
import { useNow } from "../../src/state/clock";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function Clock() {
  return <p>{new Date(useNow() * 1000).toISOString()}</p>;
}

test("the clock goes on every second", () => {
  vi.setSystemTime("2030-01-01T10:00:00Z");
  render(<Clock />);
  act(() => void vi.advanceTimersByTime(2_000));
  expect(screen.getByText("2030-01-01T10:00:02.000Z")).toBeDefined();
});

test("a clock at which nobody has looked for a while is right at once", () => {
  vi.setSystemTime("2030-01-01T11:00:00Z");
  const { unmount } = render(<Clock />);
  unmount();
  vi.setSystemTime("2030-01-01T12:00:00Z");
  render(<Clock />);
  expect(screen.getByText("2030-01-01T12:00:00.000Z")).toBeDefined();
});

test("what has just begun has lasted for seconds, not for thousandths of them", () => {
  vi.setSystemTime("2030-01-01T13:00:00Z");
  render(<Since at={Date.now() / 1000} />);
  expect(screen.getByText("0 s")).toBeDefined();
});
