import { memo, useMemo } from "react";
import { Link } from "wouter";
import { FirstAgent } from "../../parts/FirstAgent";
import { count } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { visible } from "../../parts/Markdown";
import { Empty } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { VirtualRows } from "../../parts/VirtualRows";
import type { Room } from "../../projection/world";
import { useAddress, useSelection } from "../../shell/addresses";
import { usePage, useWorld } from "../../state/page";
import { seenKey, seenOf, unreadOf, useSeen } from "../../state/seen";
import { titleOf, useTitle } from "./names";

const ROW_HEIGHT = 58;

/** All rooms, the one with the newest message first. */
export function RoomList({ openId }: { openId: string | undefined }) {
  const rooms = useWorld((world) => world.rooms);
  const [query, setQuery] = useSelection("find");
  const inOrder = useMemo(() => newestFirst(rooms), [rooms]);
  const shown = useFound(inOrder, query.trim().toLowerCase());
  if (rooms.size === 0) {
    return (
      <Empty title="No chats yet">
        <p>
          A chat with one agent, or a group of several, appears here when you open it. Agents answer as they find time.
        </p>
        <FirstAgent />
      </Empty>
    );
  }
  return (
    <>
      <input
        type="search"
        aria-label="Find a chat"
        placeholder="Find a chat"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <VirtualRows
        count={shown.length}
        rowHeight={ROW_HEIGHT}
        label="Chats"
        role="list"
        row={(index) => {
          const room = shown[index];
          return room && <RoomLink key={room.roomId} room={room} isOpen={room.roomId === openId} />;
        }}
      />
    </>
  );
}

function newestFirst(rooms: ReadonlyMap<string, Room>): readonly Room[] {
  return [...rooms.values()].sort((one, other) => other.lastAt - one.lastAt || one.roomId.localeCompare(other.roomId));
}

/** Those whose title has the words in it. The agents, whose names may be the title, matter only when there are some. */
function useFound(rooms: readonly Room[], wanted: string): readonly Room[] {
  const agents = useWorld((world) => (wanted === "" ? null : world.agents));
  return useMemo(() => {
    if (agents === null) return rooms;
    const nameOf = (id: string) => agents.get(id)?.name || id;
    return rooms.filter((room) => titleOf(room, nameOf).toLowerCase().includes(wanted));
  }, [rooms, agents, wanted]);
}

const RoomLink = memo(function RoomLink({ room, isOpen }: { room: Room; isOpen: boolean }) {
  const to = useAddress();
  const title = useTitle(room);
  const session = usePage(seenKey);
  const unread = useSeen(({ seen }) => unreadOf(room, seenOf(seen, session)));
  return (
    // biome-ignore lint/a11y/useSemanticElements: the virtual list is made of plain places
    <div role="listitem" className="panes-item">
      <Link
        href={to("chats", room.roomId)}
        className={unread > 0 ? "panes-link panes-unread chat-list-link" : "panes-link chat-list-link"}
        aria-current={isOpen ? "page" : undefined}
      >
        <Icon name={room.kind === "direct" ? "agent" : "chats"} />
        <span className="chat-list-text">
          <bdi className="ellipsis">{visible(title)}</bdi>
          <span className="quiet ellipsis">
            {room.answering.size > 0 ? "answering…" : <Ago at={room.lastAt} />}
            {room.kind === "group" && ` · ${room.members.length} ${room.members.length === 1 ? "member" : "members"}`}
          </span>
        </span>
        {unread > 0 && (
          <span className="nav-badge">
            {count(unread)}
            <span className="visually-hidden"> unread</span>
          </span>
        )}
      </Link>
    </div>
  );
});
