/** How long work may go on before the page may draw and answer. */
const LONGEST_MS = 12;

interface Scheduler {
  yield?: () => Promise<void>;
}

/** For long work: awaited now and then, what it returns lets the page draw when the work has gone on for too long. */
export function breather(longestMs = LONGEST_MS): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < longestMs) return undefined;
    return pause().then(() => {
      since = performance.now();
    });
  };
}

function pause(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: Scheduler };
  return scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve, 0));
}
