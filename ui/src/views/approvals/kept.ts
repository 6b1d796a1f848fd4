import { type FocusEvent, type RefObject, useLayoutEffect, useRef } from "react";

/** A card that is decided keeps its height and the focus that was in it: nothing comes to lie where it was. */
export function useKept(
  card: RefObject<HTMLElement | null>,
  foot: RefObject<HTMLElement | null>,
  isDecided: boolean,
): { onFocus: () => void; onBlur: (event: FocusEvent) => void } {
  const hasFocus = useRef(false);
  const height = useRef(0);
  useLayoutEffect(() => {
    if (foot.current === null) return;
    if (!isDecided) height.current = foot.current.offsetHeight;
    foot.current.style.minHeight = isDecided ? `${height.current}px` : "";
  });
  useLayoutEffect(() => {
    if (isDecided && hasFocus.current) card.current?.focus({ preventScroll: true });
  }, [isDecided, card]);
  return {
    onFocus: () => {
      hasFocus.current = true;
    },
    onBlur: ({ relatedTarget }) => {
      hasFocus.current = card.current?.contains(relatedTarget) ?? false;
    },
  };
}
