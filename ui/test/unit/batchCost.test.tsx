import { act } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AgentChoice } from "../../src/parts/AgentChoice";
import { AgentField } from "../../src/parts/AgentField";
import type { World } from "../../src/projection/world";
import { Frame } from "../../src/shell/Frame";
import { usePage } from "../../src/state/page";
import { RoomList } from "../../src/views/chats/RoomList";
import EventsView from "../../src/views/events/EventsView";
import { note, renderAt, setStage } from "./stage";

const SECOND_OF_BATCHES = 20;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function begin(): void {
  setStage(
    [
      note("agent.created", { agentId: "ann", name: "Ann", description: "" }),
      note("room.created", { roomId: "r", kind: "group", title: "", members: ["ann"], hopLimit: 1 }),
    ],
    { "async.listEvents": () => ({ events: [] }) },
  );
}

/** How often all of a map is gone through in a second in which something about every agent changes in each batch. */
async function walks(part: "agents" | "rooms" | "inbox", content: ReactNode): Promise<number> {
  let walked = 0;
  const counted = <Value,>(map: ReadonlyMap<string, Value>) => {
    const copy = new Map(map);
    copy.values = () => {
      walked += 1;
      return Map.prototype.values.call(copy);
    };
    return copy;
  };
  const change = (world: World): World => ({
    ...world,
    seq: world.seq + 1,
    agents: part === "agents" ? counted(world.agents) : new Map(world.agents),
  });
  usePage.setState(({ live }) => ({ live: { ...live, [part]: counted(live[part] as ReadonlyMap<string, unknown>) } }));
  renderAt("/s/default", content);
  await act(() => vi.advanceTimersByTimeAsync(0));
  walked = 0;
  for (let batch = 0; batch < SECOND_OF_BATCHES; batch += 1) {
    act(() => usePage.setState(({ live }) => ({ live: change(live) })));
    await act(() => vi.advanceTimersByTimeAsync(50));
  }
  return walked;
}

describe("while something happens all the time", () => {
  beforeEach(begin);

  test("the mails are not counted again", async () => {
    expect(await walks("inbox", <Frame>.</Frame>)).toBe(0);
  });

  test("the rooms are not sorted again", async () => {
    expect(await walks("rooms", <RoomList openId={undefined} />)).toBe(0);
  });

  test.each([
    ["who sleeps until an event", <EventsView key="events" />],
    ["the agents that a field offers", <AgentField key="field" label="Agent" value="" onChange={() => {}} />],
    ["the agents to choose from", <AgentChoice key="choice" label="Agent" chosen={new Set()} onChange={() => {}} />],
  ])("%s are looked for a few times a second", async (_, content) => {
    const walked = await walks("agents", content);
    expect(walked).toBeGreaterThan(0);
    expect(walked).toBeLessThanOrEqual(5);
  });
});
