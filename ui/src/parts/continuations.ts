const MARK = "~";

/** A part of an answer, and whether it goes on where the one before was cut at its greatest length. */
export interface Part {
  readonly final: string;
  readonly continuesCut: boolean;
}

/** What the user reads of them. One that continues a cut follows as it is, maybe within a word; others begin a line. */
export function joinedFinal(parts: readonly Part[]): string {
  let whole = "";
  let goesOn = true;
  for (const { final, continuesCut } of parts) {
    goesOn &&= continuesCut;
    if (final !== "") {
      whole = goesOn ? whole + final : `${whole.trimEnd()}\n${final.trimStart()}`;
      goesOn = true;
    }
  }
  return whole.trim();
}

/** The task in which another goes on for the `number`th time: the server names them after the first. */
export function continuationId(taskId: string, number: number): string {
  return `${taskId}${MARK}${number}`;
}

/** Whether a task, by its id, goes on with the other. */
export function isContinuation(id: string, taskId: string): boolean {
  return id.startsWith(`${taskId}${MARK}`);
}
