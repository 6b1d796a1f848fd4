import { useState } from "react";
import { Link } from "wouter";
import { useActing } from "../../parts/acting";
import { Icon } from "../../parts/Icon";
import { visible } from "../../parts/Markdown";
import { Empty } from "../../parts/Messages";
import type { Room } from "../../projection/world";
import { useAddress, usePlace } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { Composer } from "./Composer";
import { Members } from "./Members";
import { NewChat, NewGroup } from "./NewRoom";
import { Sender, useTitle } from "./names";
import { RoomList } from "./RoomList";
import { RoomQuestions } from "./RoomQuestions";
import { Transcript } from "./Transcript";
import "../../parts/panes.css";
import "./chats.css";

const NAMED = 6;

export default function ChatsView() {
  const { item: openId } = usePlace();
  const room = useWorld((world) => (openId === undefined ? undefined : world.rooms.get(openId)));
  return (
    <div className="panes" data-open={openId !== undefined}>
      <h1 className="visually-hidden">Chats</h1>
      <section className="panes-list" aria-label="All chats">
        <ListHead />
        <RoomList openId={openId} />
      </section>
      {room ? <OpenRoom key={room.roomId} room={room} /> : <NoRoom openId={openId} />}
    </div>
  );
}

function ListHead() {
  const [opened, setOpened] = useState<"chat" | "group" | null>(null);
  const acting = useActing();
  return (
    <div className="panes-list-head">
      <span className="panes-title" aria-hidden="true">
        Chats
      </span>
      <span className="space" />
      <button type="button" {...acting} onClick={() => setOpened("chat")}>
        New chat
      </button>
      <button type="button" {...acting} onClick={() => setOpened("group")}>
        New group
      </button>
      {opened === "chat" && <NewChat onClose={() => setOpened(null)} />}
      {opened === "group" && <NewGroup onClose={() => setOpened(null)} />}
    </div>
  );
}

function NoRoom({ openId }: { openId: string | undefined }) {
  const rooms = useWorld((world) => world.rooms);
  const to = useAddress();
  if (openId === undefined && rooms.size === 0) return <section className="panes-open" aria-label="Chat" />;
  return (
    <section className="panes-open" aria-label="Chat" data-empty="true">
      {openId === undefined ? (
        <Empty title="Choose a chat">What you write is answered by its agents; you can read along as they write.</Empty>
      ) : (
        <Empty title="There is no such chat">
          It may have been opened later than the time that is shown. <Link href={to("chats")}>See all chats</Link>
        </Empty>
      )}
    </section>
  );
}

function OpenRoom({ room }: { room: Room }) {
  const title = useTitle(room);
  const [sent, setSent] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  const onMembers = () => setIsOpen(true);
  return (
    <section className="panes-open" aria-label={title}>
      <RoomHead room={room} title={title} onMembers={onMembers} />
      <Transcript room={room} sent={sent} />
      <RoomQuestions room={room} />
      <Composer room={room} onSent={() => setSent(sent + 1)} onMembers={onMembers} />
      {isOpen && <Members room={room} onClose={() => setIsOpen(false)} />}
    </section>
  );
}

function RoomHead({ room, title, onMembers }: { room: Room; title: string; onMembers: () => void }) {
  const to = useAddress();
  const more = room.members.length - NAMED;
  const isNamed = room.kind !== "direct" && room.title !== ""; // otherwise it is called as its members are
  return (
    <header className="panes-head chat-head">
      <Link href={to("chats")} className="panes-back icon-button" aria-label="All chats">
        <Icon name="back" />
      </Link>
      <h2 className={isNamed ? "ellipsis" : "visually-hidden"}>
        <bdi>{visible(title)}</bdi>
      </h2>
      <span className="chat-members ellipsis" data-alone={!isNamed}>
        {room.members.slice(0, NAMED).map((agentId) => (
          <Sender key={agentId} sender={agentId} />
        ))}
        {more > 0 && <span className="quiet">and {more} more</span>}
      </span>
      {room.kind === "group" && (
        <button type="button" onClick={onMembers}>
          Members
        </button>
      )}
    </header>
  );
}
