const MARK = "~";

/** The task in which another goes on for the `number`th time: the server names them after the first. */
export function continuationId(taskId: string, number: number): string {
  return `${taskId}${MARK}${number}`;
}

/** Whether a task, by its id, goes on with the other. */
export function isContinuation(id: string, taskId: string): boolean {
  return id.startsWith(`${taskId}${MARK}`);
}
