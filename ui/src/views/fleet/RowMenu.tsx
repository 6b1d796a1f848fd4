import { type KeyboardEvent, useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { Icon } from "../../parts/Icon";
import { useAddress } from "../../shell/addresses";
import { useIsLive, useWorld, whyNotLive } from "../../state/page";
import { steer } from "../../steer/bulk";
import { ACTION_NAMES, ACTIONS, fits } from "../../steer/lifecycle";

export interface RowMenuPlace {
  readonly agentId: string;
  /** The corner that it is put at, in the window. */
  readonly x: number;
  readonly y: number;
}

const WIDTH = 200;
const HEIGHT = 365;

/** What can be done with one agent. */
export function RowMenu({ agentId, x, y, onClose }: RowMenuPlace & { onClose: () => void }) {
  const agent = useWorld((world) => world.agents.get(agentId));
  const isLive = useIsLive();
  const element = useRef<HTMLDivElement>(null);
  const [, go] = useLocation();
  const address = useAddress();
  useEffect(() => {
    const menu = element.current;
    if (menu && "showPopover" in menu) menu.showPopover();
    menu?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, []);
  if (agent === undefined) return null;

  function onKeyDown(event: KeyboardEvent) {
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    const items = [...(element.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
    const here = items.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    items[(here + step + items.length) % items.length]?.focus();
  }
  const left = Math.max(8, Math.min(x - WIDTH, innerWidth - WIDTH - 8));
  const top = Math.max(8, Math.min(y, innerHeight - HEIGHT - 8));
  return (
    <div
      ref={element}
      popover="auto"
      role="menu"
      tabIndex={-1}
      aria-label={`Actions for ${agent.name || agentId}`}
      className="fleet-menu"
      style={{ left, top, width: WIDTH }}
      onToggle={({ newState }) => newState === "closed" && onClose()}
      onKeyDown={onKeyDown}
    >
      <button type="button" role="menuitem" onClick={() => go(address("agents", agentId))}>
        <Icon name="agent" size={15} /> Open
      </button>
      {ACTION_NAMES.map((action) => {
        const isPossible = isLive && fits(agent, action);
        return (
          <button
            type="button"
            role="menuitem"
            key={action}
            disabled={!isPossible}
            title={isLive ? ACTIONS[action].hint : whyNotLive()}
            onClick={() => {
              onClose();
              steer(action, [agentId]);
            }}
          >
            <Icon name={ACTIONS[action].icon} size={15} /> {ACTIONS[action].label}
          </button>
        );
      })}
    </div>
  );
}
