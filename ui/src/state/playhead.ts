import { create } from "zustand";
import { currentHistory } from "../history/history";
import { pageOf } from "../history/pages";
import { advance } from "../history/playing";
import { reduce } from "../projection/reduce";
import type { World } from "../projection/world";
import { usePage } from "./page";

/** How long the page shows what it has before it shows a kept world near the one that is wanted. */
const PATIENCE_MS = 80;
const FRAME_MS = 40;
/** How long playing stands still at most, in seconds of the watcher. */
const LONGEST_GAP = 1;

/** The way to the moment that is wanted, beside the world that is shown meanwhile. */
export interface Travel {
  /** The number of the notification that is wanted. */
  readonly wanted: number;
  /** How much of the way is done, from 0 to 1; null when it is shown. */
  readonly progress: number | null;
  readonly problem: Error | null;
  /** The newest notification when the page left the present. */
  readonly leftAt: number;
}

const AT_HOME: Travel = { wanted: 0, progress: null, problem: null, leftAt: 0 };

export const useTravel = create<Travel>()(() => AT_HOME);

let turn: AbortController | null = null;
let patience: ReturnType<typeof setTimeout> | undefined;

/** Show the whole page as it was right after this notification. */
export async function travelTo(seq: number): Promise<void> {
  turn?.abort();
  const own = new AbortController();
  turn = own;
  const { live, playhead } = usePage.getState();
  const { keyframes, pages } = currentHistory();
  const wanted = Math.max(keyframes.first, Math.min(Math.trunc(seq), live.seq));
  const leftAt = playhead === null ? live.seq : useTravel.getState().leftAt;
  useTravel.setState({ wanted, leftAt, progress: 0, problem: null });
  if (playhead === null) show(keyframes.nearest(wanted));
  if (wanted > 0) void pages.page(pageOf(wanted)).catch(() => {}); // to tell what happened then; the fold needs it too
  patience ??= setTimeout(showNearest, PATIENCE_MS);
  try {
    const onProgress = (progress: number) => !own.signal.aborted && useTravel.setState({ progress });
    const world = await keyframes.worldAt(wanted, { signal: own.signal, onProgress, from: playhead?.world });
    if (own.signal.aborted) return;
    show(world);
    useTravel.setState({ progress: null });
  } catch (problem) {
    if (!own.signal.aborted) useTravel.setState({ progress: null, problem: problem as Error });
  } finally {
    if (turn === own) {
      turn = null;
      clearTimeout(patience);
      patience = undefined;
    }
  }
}

/** Show the present again. */
export function backToLive(): void {
  turn?.abort();
  turn = null;
  clearTimeout(patience);
  patience = undefined;
  useTravel.setState(AT_HOME);
  usePage.setState({ playhead: null });
}

/** Let it happen again from where the playhead is, so many times as fast; 0 stops. */
export async function play(speed: number): Promise<void> {
  const { playhead } = usePage.getState();
  if (playhead === null) return;
  turn?.abort();
  const own = new AbortController();
  turn = own;
  usePage.setState({ playhead: { ...playhead, speed } });
  useTravel.setState({ wanted: playhead.world.seq, progress: null, problem: null });
  if (speed === 0) return;
  try {
    await run(speed, own.signal);
  } catch (problem) {
    if (!own.signal.aborted) useTravel.setState({ problem: problem as Error });
  }
  const standing = usePage.getState().playhead;
  if (!own.signal.aborted && standing !== null) usePage.setState({ playhead: { ...standing, speed: 0 } });
}

async function run(speed: number, signal: AbortSignal): Promise<void> {
  let clock = usePage.getState().playhead?.world.at ?? 0;
  let last = performance.now();
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, FRAME_MS));
    const { playhead, live } = usePage.getState();
    if (signal.aborted || playhead === null || playhead.world.seq >= live.seq) return;
    const { world } = playhead;
    const ahead = await notesAfter(world);
    if (signal.aborted) return;
    const now = performance.now();
    const seconds = Math.min((now - last) / 1000, 0.25) * speed;
    last = now;
    const step = advance(ahead, clock, { seconds, longestGap: LONGEST_GAP * speed });
    clock = step.clock;
    if (step.passed === 0) continue;
    const next = reduce(world, ahead.slice(0, step.passed));
    usePage.setState({ playhead: { world: next, speed } });
    useTravel.setState({ wanted: next.seq });
  }
}

/** What comes after a world, up to the end of its page. */
async function notesAfter({ seq }: World) {
  const { pages } = currentHistory();
  const number = pageOf(seq + 1);
  const notes = await pages.page(number);
  if (notes.length > 0 && seq > (notes.at(-1)?.seq ?? 0) - 200 && pages.lastSeq > (notes.at(-1)?.seq ?? 0)) {
    void pages.page(number + 1).catch(() => {}); // playing finds out when it gets there
  }
  return notes.slice(seq + 1 - (notes[0]?.seq ?? 0));
}

function showNearest(): void {
  patience = undefined;
  const shown = usePage.getState().playhead?.world;
  if (turn === null || shown === undefined) return;
  const { wanted } = useTravel.getState();
  const near = currentHistory().keyframes.nearest(wanted);
  if (shown.seq > wanted || near.seq > shown.seq) show(near);
}

function show(world: World): void {
  usePage.setState({ playhead: { world, speed: 0 } });
}

usePage.subscribe((page, before) => {
  const isAnother = page.sessionId !== before.sessionId || page.createdAt !== before.createdAt;
  if (isAnother && (page.playhead !== null || turn !== null)) backToLive();
});
