import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useAnswer } from "../../src/state/answers";
import { tell, usePage } from "../../src/state/page";
import { replaceServer, type Server } from "../../src/state/server";
import { note, setStage } from "./stage";

const ANSWER_MS = 400;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A server that takes its time, and tells how many it has answered. */
function slow() {
  let asked = 0;
  setStage([]);
  const call = () => {
    asked += 1;
    const rooms = asked;
    return new Promise((resolve) => setTimeout(() => resolve({ rooms }), ANSWER_MS));
  };
  replaceServer({ call } as unknown as Server);
  return () => asked;
}

function Rooms({ sessionId = "default" }) {
  const { data, isLoading } = useAnswer("room.list", { sessionId }, ({ name }) => name === "room.created");
  return <p>{isLoading ? "loading" : `answer ${data?.rooms}`}</p>;
}

const room = note("room.created", { roomId: "r", kind: "group", title: "", members: ["a"], hopLimit: 1 });
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

test("an answer is shown also while more happens than there are answers to", async () => {
  const asked = slow();
  render(<Rooms />);
  for (let passed = 0; passed < 2_000; passed += 50) {
    tell([room]);
    await pass(50);
  }
  expect(screen.getByText(/^answer [45]$/)).toBeTruthy();
  expect(asked()).toBeLessThanOrEqual(6);
});

test("what happened while an answer was on its way is asked for afterwards", async () => {
  slow();
  render(<Rooms />);
  tell([room]);
  await pass(ANSWER_MS);
  expect(screen.getByText("answer 1")).toBeTruthy();
  await pass(ANSWER_MS);
  expect(screen.getByText("answer 2")).toBeTruthy();
});

test("an answer to another question is not shown", async () => {
  slow();
  const { rerender } = render(<Rooms />);
  await pass(ANSWER_MS / 2);
  rerender(<Rooms sessionId="other" />);
  await pass(ANSWER_MS / 2);
  expect(screen.getByText("loading")).toBeTruthy();
  await pass(ANSWER_MS / 2);
  expect(screen.getByText("answer 2")).toBeTruthy();
});

test("it is asked again when the connection comes back", async () => {
  slow();
  render(<Rooms />);
  await pass(ANSWER_MS);
  act(() => usePage.setState({ connection: "lost" }));
  act(() => usePage.setState({ connection: "open" }));
  await pass(ANSWER_MS);
  expect(screen.getByText("answer 2")).toBeTruthy();
});
