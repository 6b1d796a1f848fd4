/** Somebody who can be mentioned. */
export interface Candidate {
  readonly id: string;
  /** What is shown beside the id. */
  readonly name: string;
}

const EVERYONE: Candidate = { id: "all", name: "everyone in this room" };

export interface Mention {
  /** Where its `@` is. */
  readonly start: number;
  readonly query: string;
}

const LONGEST = 60;
const SHOWN = 8;

/** The mention that is being written at the caret; null if there is none. */
export function mentionAt(text: string, caret: number): Mention | null {
  const [, query] = /(?<![\p{L}\p{N}_\\@])@([^\s@]*)$/u.exec(text.slice(Math.max(0, caret - LONGEST), caret)) ?? [];
  return query === undefined ? null : { start: caret - query.length - 1, query };
}

/** Who fits, those whose name begins so first. */
export function candidates(query: string, members: readonly Candidate[]): Candidate[] {
  const wanted = query.toLowerCase();
  const rank = ({ id, name }: Candidate) => {
    const names = [id.toLowerCase(), name.toLowerCase()];
    if (names.some((each) => each.startsWith(wanted))) return 0;
    return names.some((each) => each.includes(wanted)) ? 1 : 2;
  };
  return [...members, EVERYONE]
    .map((candidate) => ({ candidate, rank: rank(candidate) }))
    .filter((each) => each.rank < 2)
    .sort((one, other) => one.rank - other.rank)
    .slice(0, SHOWN)
    .map(({ candidate }) => candidate);
}

/** The text with the mention completed, and where the caret is then. */
export function completed(text: string, { start, query }: Mention, { id }: Candidate): { text: string; caret: number } {
  const after = text.slice(start + 1 + query.length);
  const written = `@${id}${after.startsWith(" ") ? "" : " "}`;
  const caret = start + written.length + (after.startsWith(" ") ? 1 : 0);
  return { text: text.slice(0, start) + written + after, caret };
}
