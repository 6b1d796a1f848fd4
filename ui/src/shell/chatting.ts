import { useCallback } from "react";
import { act } from "../state/actions";
import { usePage, useWorld } from "../state/page";
import { useAddress, useLeading } from "./addresses";

const PATIENCE_MS = 2_000;

/** Leads to a room that is being made, as soon as the page knows it: before that it would say that there is none. */
export function useOpening(): (made: Promise<{ roomId: string } | undefined>) => Promise<undefined> {
  const lead = useLeading();
  const to = useAddress();
  return useCallback(
    async (made) => {
      const room = await made;
      if (room === undefined) return;
      await known(room.roomId);
      lead(to("chats", room.roomId));
    },
    [lead, to],
  );
}

/** The chat with an agent; null if there is none yet, and a way to begin it. */
export function useChat(agentId: string): { roomId: string | null; begin: () => void } {
  const open = useOpening();
  const roomId = useWorld((world) => {
    for (const room of world.rooms.values()) {
      if (room.kind === "direct" && room.members.includes(agentId)) return room.roomId;
    }
    return null;
  });
  return { roomId, begin: () => void open(act("room.openChat", { agentId })) };
}

/** Wait until the page has heard of a room. */
function known(roomId: string): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, PATIENCE_MS);
    const leave = usePage.subscribe(look);
    function done() {
      clearTimeout(timer);
      leave();
      resolve();
    }
    function look() {
      if (usePage.getState().live.rooms.has(roomId)) done();
    }
    look();
  });
}
