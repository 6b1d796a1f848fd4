import { useCallback } from "react";
import { USER } from "../../projection/coordination";
import { nameIn } from "../../state/names";
import { shownWorld, useWorld } from "../../state/page";

/** What people call an agent, or the user. Asked anew whenever there are other agents. */
export function useName(): (id: string) => string {
  const known = useWorld((world) => world.agents.size);
  // biome-ignore lint/correctness/useExhaustiveDependencies: with another number of agents there are other names
  return useCallback(
    (id: string) => {
      if (id === USER) return "You";
      return nameIn(shownWorld().agents, id);
    },
    [known],
  );
}
