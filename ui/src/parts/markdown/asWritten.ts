import type { Element, ElementContent, Root, RootContent } from "hast";

const EMPHASES = new Set(["em", "strong"]);
/** What stands before the text of a line: blanks, and the marks of quotes. */
const MARGIN = /^[ \t>]*/;
const TAB = 4;

/**
 * Keeps two things that Markdown takes away from texts of people who do not think of it: marks that are part of a name
 * (`__init__`, `a*b*c`), and how far the lines of a paragraph are indented (code without a fence).
 */
export function asWritten(): (tree: Root, file: { toString(): string }) => void {
  return (tree, file) => {
    const source = String(file);
    tree.children = named(tree.children as ElementContent[], source) as RootContent[];
  };
}

function named(nodes: readonly ElementContent[], source: string): ElementContent[] {
  return nodes.flatMap((node) => {
    if (node.type !== "element") return [node];
    const children = named(node.children, source);
    const marks = EMPHASES.has(node.tagName) ? marksOfName(node, source) : "";
    if (marks !== "") return [text(marks), ...children, text(marks)];
    return [{ ...node, children: node.tagName === "p" ? new Paragraph(node, source).indented(children) : children }];
  });
}

/** The marks around what is part of a name rather than emphasized; empty if it is emphasized. */
function marksOfName({ tagName, position }: Element, source: string): string {
  const [start, end] = [position?.start.offset, position?.end.offset];
  if (start === undefined || end === undefined) return "";
  const marks = source.slice(start, start + (tagName === "strong" ? 2 : 1));
  const inner = source.slice(start + marks.length, end - marks.length);
  const isPart = [source[start - 1], source[end]].map((beside) => /[\w/]/.test(beside ?? ""));
  if (marks === "__") return /^\w+$/.test(inner) ? marks : "";
  if (marks === "_") return /^\w*[_\d]\w*$/.test(inner) ? marks : "";
  if (marks === "*") return isPart.includes(true) ? marks : "";
  return isPart.includes(false) ? "" : marks;
}

/** The lines of a paragraph, each as far to the right of the first one as it was written. */
class Paragraph {
  readonly #source: string;
  readonly #margin: number;
  #isLineStart = false;

  constructor({ position }: Element, source: string) {
    this.#source = source;
    this.#margin = this.#before(position?.start.offset ?? 0);
  }

  indented(nodes: readonly ElementContent[]): ElementContent[] {
    return nodes.flatMap((node) => {
      if (node.type === "text") return [this.#text(node)];
      if (node.type !== "element") return [node];
      const isFirst = this.#isLineStart;
      this.#isLineStart = node.tagName === "br";
      const children = this.indented(node.children);
      const indent = isFirst ? this.#indent(node.position?.start.offset) : "";
      return [...(indent === "" ? [] : [text(indent)]), { ...node, children }];
    });
  }

  #text(node: Extract<ElementContent, { type: "text" }>): ElementContent {
    const start = node.position?.start.offset;
    const isFirst = this.#isLineStart;
    if (node.value !== "") this.#isLineStart = node.value.endsWith("\n");
    if (start === undefined) return node;
    const lines = node.value.split("\n");
    const written = this.#source.slice(start, node.position?.end.offset).split("\n");
    const first = isFirst ? this.#indent(start) : "";
    if (lines.length !== written.length) return { ...node, value: first + node.value }; // some are written as entities
    let at = start;
    const kept = lines.map((line, index) => {
      const margin = MARGIN.exec(written[index] ?? "")?.[0].length ?? 0;
      const indent = index === 0 ? first : line === "" ? "" : this.#indent(at + margin);
      at += (written[index]?.length ?? 0) + 1;
      return indent + line;
    });
    return { ...node, value: kept.join("\n") };
  }

  #indent(offset: number | undefined): string {
    return offset === undefined ? "" : " ".repeat(Math.max(0, this.#before(offset) - this.#margin));
  }

  /** How wide is what stands before this place in its line. */
  #before(offset: number): number {
    const line = this.#source.slice(this.#source.lastIndexOf("\n", offset - 1) + 1, offset);
    return [...line].reduce((width, each) => (each === "\t" ? width + TAB - (width % TAB) : width + 1), 0);
  }
}

function text(value: string): ElementContent {
  return { type: "text", value };
}
