const NAMES: Record<string, string> = {
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
};
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** The text with the characters that turn the direction of writing as visible marks: nothing is read as it is not. */
export function visible(text: string): string {
  return text.replace(TURNS, (turn) => `⟦${NAMES[turn]}⟧`);
}
