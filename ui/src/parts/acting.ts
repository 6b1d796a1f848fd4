import { useIsLive, whyNotLive } from "../state/page";

/** For a button that acts, with what it does: while nothing can be done it is off and says why. */
export function useActing(hint?: string): { disabled: boolean; title: string | undefined } {
  const isLive = useIsLive();
  return { disabled: !isLive, title: isLive ? hint : whyNotLive() };
}
