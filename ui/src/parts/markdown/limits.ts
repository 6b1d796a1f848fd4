/** What is rendered at most. Beyond it the parser takes so long that the page stands still. */
const MOST_CHARACTERS = 20_000;
const MOST_LINES = 600;
const MOST_MARKS = 2_500;
/** How many quotes and lists may lie in one another at the beginning of a line. */
const MOST_DEPTH = 60;

const MARKS = new Set([..."*_[]<>|`~&@!"].map((mark) => mark.charCodeAt(0)));
const NEW_LINE = 10;
const CONTAINERS = /^(?:[ \t]*(?:[>+*-]|\d{1,9}[.)]))+/;

/** The beginning of a text that can be rendered quickly: all of it, for what people and models usually write. */
export function rendered(text: string): string {
  const end = endOfRendered(text);
  if (end >= text.length) return text;
  const lineStart = text.lastIndexOf("\n", end) + 1;
  const cut = end - lineStart < 500 && lineStart > 0 ? lineStart : end;
  const isInPair = /[\ud800-\udbff]/.test(text[cut - 1] ?? "");
  return text.slice(0, isInPair ? cut - 1 : cut);
}

function endOfRendered(text: string): number {
  let [lines, marks] = [0, 0];
  const last = Math.min(text.length, MOST_CHARACTERS);
  for (let index = 0; index < last; index++) {
    const code = text.charCodeAt(index);
    if (MARKS.has(code)) marks += 1;
    if (code === NEW_LINE) lines += 1;
    const isLineStart = index === 0 || text.charCodeAt(index - 1) === NEW_LINE;
    if (marks > MOST_MARKS || lines > MOST_LINES || (isLineStart && isDeep(text, index))) return index;
  }
  return last;
}

function isDeep(text: string, start: number): boolean {
  const [containers = ""] = CONTAINERS.exec(text.slice(start, start + 400)) ?? [];
  return containers.replace(/[\s\d]/g, "").length > MOST_DEPTH;
}

/**
 * A text that grows, in pieces of which only the last one still changes: each can be rendered by itself. They end
 * between paragraphs, outside of blocks of code.
 */
export function pieces(text: string, least = 1_500): string[] {
  const found: string[] = [];
  let [start, at, fence] = [0, 0, ""];
  while (at < text.length) {
    const newLine = text.indexOf("\n", at);
    const end = newLine === -1 ? text.length : newLine + 1;
    const line = text.slice(at, end).trim();
    const [opened = ""] = /^(?:`{3,}|~{3,})/.exec(line) ?? [];
    if (fence !== "") {
      if (opened.startsWith(fence) && line === opened) fence = "";
    } else if (opened !== "") fence = opened;
    else if (line === "" && end - start >= least && /[^\s\d*+-]/.test(text[end] ?? " ")) {
      found.push(text.slice(start, end));
      start = end;
    }
    at = end;
  }
  if (start < text.length) found.push(text.slice(start));
  return found;
}
