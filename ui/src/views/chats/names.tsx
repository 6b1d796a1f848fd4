import { type CSSProperties, useMemo } from "react";
import { Link } from "wouter";
import { visible } from "../../parts/Markdown";
import { USER } from "../../projection/coordination";
import type { Room } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { nameIn, useName } from "../../state/names";
import { useWorld } from "../../state/page";

/** What a room is called: its title or, without one, its members. */
export function titleOf(room: Room, nameOf: (agentId: string) => string): string {
  if (room.title !== "") return room.title;
  return room.members.map(nameOf).join(", ") || room.roomId;
}

export function useTitle(room: Room): string {
  return useWorld((world) => titleOf(room, (id) => nameIn(world.agents, id)));
}

/** All names by which the members of a room can be mentioned, those that mean everyone included. */
export function useMentionable(room: Room): readonly string[] {
  const names = useWorld((world) => room.members.map((id) => nameIn(world.agents, id)).join("\n"));
  return useMemo(() => [...new Set([...room.members, ...names.split("\n"), "all", "everyone"])], [room.members, names]);
}

/** The colour that somebody has in every chat. */
export function colourOf(sender: string): CSSProperties {
  let sum = 0;
  for (const character of sender) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 3600;
  return { "--hue": (sum * 137) % 360 } as CSSProperties;
}

/** Who says something; the name of an agent leads to its page. */
export function Sender({ sender }: { sender: string }) {
  const name = useName(sender);
  const to = useAddress();
  if (sender === USER) return <strong className="chat-sender chat-sender-user">You</strong>;
  return (
    <Link className="chat-sender" style={colourOf(sender)} href={to("agents", sender)} title={sender}>
      <bdi>{visible(name)}</bdi>
    </Link>
  );
}
