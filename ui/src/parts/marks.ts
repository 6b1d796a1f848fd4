/** A line that says who wrote those that follow, as models are shown it. */
const MARK = /^<\/?said (by="[^"]*" )?id="\d+">$/;

export function isMark(line: string): boolean {
  return MARK.test(line);
}

/** A text without the marks that are there for models; the page shows otherwise who wrote what. */
export function withoutMarks(text: string): string {
  return text
    .split("\n")
    .filter((line) => !isMark(line))
    .join("\n");
}
