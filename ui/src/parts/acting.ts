import { isReachable, useIsLive, usePage, whyNotLive, whyNotReachable } from "../state/page";

interface Acting {
  readonly disabled: boolean;
  readonly title: string | undefined;
}

/** For a button that acts, with what it does: while nothing can be done it is off and says why. */
export function useActing(hint?: string): Acting {
  const isLive = useIsLive();
  return { disabled: !isLive, title: isLive ? hint : whyNotLive() };
}

/** As `useActing`, for what leaves the session as it is: that can be done in the past too. */
export function useReaching(hint?: string): Acting {
  const canReach = usePage(isReachable);
  return { disabled: !canReach, title: canReach ? hint : whyNotReachable() };
}
