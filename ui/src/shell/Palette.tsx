import { Command } from "cmdk";
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../parts/Dialog";
import { Icon } from "../parts/Icon";
import { useIsLive, usePage } from "../state/page";
import { useWorldSlowly } from "../state/slowly";
import { steer } from "../steer/bulk";
import { addressOf, useAddress } from "./addresses";
import { type Deed, type Entry, findEntries, type Group } from "./commands";
import { openDialog } from "./dialogState";
import { setTheme } from "./theme";

/** Leads to any place, agent, room and session, and does what can be done, by a few letters. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const agents = useWorldSlowly((world) => world.agents, 500);
  const rooms = useWorldSlowly((world) => world.rooms, 500);
  const sessions = usePage((page) => page.sessions);
  const canAct = useIsLive();
  const [, go] = useLocation();
  const address = useAddress();
  const entries = useMemo(
    () => findEntries(query, { agents, rooms, sessions: sessions ?? [], canAct }),
    [query, agents, rooms, sessions, canAct],
  );
  function run(deed: Deed) {
    onClose();
    if (deed.kind === "go") go(address(...deed.parts));
    else if (deed.kind === "session") go(addressOf(deed.sessionId));
    else if (deed.kind === "theme") setTheme(deed.theme);
    else if (deed.kind === "open") openDialog({ kind: deed.dialog });
    else steer(deed.action, [deed.agentId]);
  }
  return (
    <Dialog title="Search or do" onClose={onClose} wide>
      <Command shouldFilter={false} loop vimBindings={false} label="Search or do" className="palette">
        <Command.Input
          autoFocus
          value={query}
          onValueChange={setQuery}
          placeholder="A place, an agent, a room; or “pause alice”"
        />
        <Command.List className="palette-list">
          <Command.Empty className="palette-nothing">
            Nothing matches. Agents are found by name and id; what is done to them as in “wake bob”.
          </Command.Empty>
          {grouped(entries).map(([group, members]) => (
            <Command.Group key={group} heading={group}>
              {members.map((entry) => (
                <Command.Item key={entry.id} value={entry.id} onSelect={() => run(entry.deed)}>
                  <Icon name={entry.icon} size={16} />
                  <span className="ellipsis">{entry.title}</span>
                  <span className="palette-detail ellipsis">{entry.detail}</span>
                </Command.Item>
              ))}
            </Command.Group>
          ))}
        </Command.List>
      </Command>
    </Dialog>
  );
}

function grouped(entries: readonly Entry[]): [Group, Entry[]][] {
  const groups = new Map<Group, Entry[]>();
  for (const entry of entries) {
    const members = groups.get(entry.group);
    if (members) members.push(entry);
    else groups.set(entry.group, [entry]);
  }
  return [...groups];
}
