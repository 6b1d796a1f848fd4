import { type PointerEvent, type RefObject, useEffect, useRef } from "react";
import { moved, type Range, zoomed } from "./range";

const DRAG_PX = 4;

interface Gestures {
  readonly box: RefObject<HTMLElement | null>;
  readonly range: Range;
  /** Where the plot begins, and how wide it is, in pixels. */
  readonly left: number;
  readonly width: number;
  readonly onZoom: (range: Range) => void;
  readonly onPan: (range: Range) => void;
  readonly onChoose: (barId: string | null) => void;
  /** The moment was moved to this time. */
  readonly onMoment: (time: number) => void;
}

interface Drag {
  readonly x: number;
  readonly range: Range;
  readonly isMoment: boolean;
  hasMoved: boolean;
  /** How far apart two fingers were. */
  distance: number | null;
}

/** Dragging pans, two fingers and the wheel zoom, and dragging the line of the moment moves it. */
export function useGestures(gestures: Gestures) {
  const current = useRef(gestures);
  current.current = gestures;
  const pointers = useRef(new Map<number, number>());
  const drag = useRef<Drag | null>(null);

  const placeOf = (clientX: number) => {
    const { box, left, width } = current.current;
    return (clientX - (box.current?.getBoundingClientRect().left ?? 0) - left) / width;
  };
  const timeAt = (clientX: number) => {
    const { range } = current.current;
    return range.from + placeOf(clientX) * (range.to - range.from);
  };

  useEffect(() => {
    const box = gestures.box.current;
    if (box === null) return;
    function turn(event: WheelEvent) {
      const { range, onZoom, onPan, width } = current.current;
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      const element = event.currentTarget as HTMLElement;
      const isZoom = event.ctrlKey || event.metaKey || element.scrollHeight <= element.clientHeight + 1;
      if (isSideways) onPan(moved(range, (event.deltaX || event.deltaY) / width));
      else if (isZoom) onZoom(zoomed(range, Math.exp(event.deltaY * 0.002), placeOf(event.clientX)));
      else return;
      event.preventDefault();
    }
    box.addEventListener("wheel", turn, { passive: false });
    return () => box.removeEventListener("wheel", turn);
  });

  function distance(): number | null {
    const [one, other] = [...pointers.current.values()];
    return one === undefined || other === undefined ? null : Math.max(Math.abs(one - other), 10);
  }

  return {
    onPointerDown(event: PointerEvent<SVGSVGElement>) {
      if (event.button !== 0) return;
      pointers.current.set(event.pointerId, event.clientX);
      const isMoment = (event.target as Element).closest("[data-moment]") !== null;
      const { range } = current.current;
      drag.current = { x: event.clientX, range, isMoment, hasMoved: false, distance: distance() };
    },
    onPointerMove(event: PointerEvent<SVGSVGElement>) {
      const from = drag.current;
      if (from === null || !pointers.current.has(event.pointerId)) return;
      pointers.current.set(event.pointerId, event.clientX);
      if (!from.hasMoved && Math.abs(event.clientX - from.x) < DRAG_PX) return;
      if (!from.hasMoved) event.currentTarget.setPointerCapture?.(event.pointerId);
      from.hasMoved = true;
      const { onPan, onZoom, onMoment, width } = current.current;
      const apart = distance();
      if (from.isMoment) onMoment(timeAt(event.clientX));
      else if (apart !== null && from.distance !== null) onZoom(zoomed(from.range, from.distance / apart));
      else onPan(moved(from.range, (from.x - event.clientX) / width));
    },
    onPointerUp(event: PointerEvent<SVGSVGElement>) {
      pointers.current.delete(event.pointerId);
      const from = drag.current;
      if (pointers.current.size === 0) drag.current = null;
      if (from === null || from.hasMoved) return;
      const target = event.target as Element;
      if (target.closest("[data-axis]")) current.current.onMoment(timeAt(event.clientX));
      else current.current.onChoose(target.closest("[data-bar]")?.getAttribute("data-bar") ?? null);
    },
    onPointerCancel(event: PointerEvent<SVGSVGElement>) {
      pointers.current.delete(event.pointerId);
      drag.current = null;
    },
  };
}
