import type { Element, ElementContent, Properties, Root, RootContent } from "hast";

const ELEMENTS = new Set(
  "p a em strong del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 hr br table thead tbody tr th td sup section".split(
    " ",
  ),
);
/** Attributes that are kept; all others go, ids too: another part of the page may have the same. */
const KEPT: Record<string, string> = { a: "href", ol: "start", code: "className", th: "align", td: "align" };
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** Where a link leads, as the browser will take it; null unless it is a page or somebody's mailbox. */
export function destination(address: unknown): URL | null {
  if (typeof address !== "string" || !/^(?:https?|mailto):/i.test(address)) return null;
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && PROTOCOLS.has(url.protocol) ? url : null;
}

/**
 * Makes a tree of Markdown harmless: raw HTML becomes text, pictures become links, links lead to pages only, and only
 * known elements with known attributes are left. `mention` finds the names that are pointed out.
 */
export function tame({ mention }: { mention: RegExp | null }): (tree: Root) => void {
  return (tree) => {
    tree.children = tree.children.flatMap((node) => tamed(node, null, mention)) as RootContent[];
  };
}

function tamed(node: RootContent, within: "a" | "code" | null, mention: RegExp | null): ElementContent[] {
  if (node.type === "text") return within === null && mention ? pointedOut(node.value, mention) : [node];
  if ((node.type as string) === "raw") return [text((node as unknown as { value: string }).value)];
  if (node.type !== "element") return [];
  if (node.tagName === "img") return picture(node, within);
  if (node.tagName === "input") return [text(node.properties.checked ? "☑" : "☐")];
  const inside = node.tagName === "a" || node.tagName === "code" ? node.tagName : within;
  const children = node.children.flatMap((child, index) => {
    return tamed(isBreak(node.children[index - 1]) ? withoutNewLine(child) : child, inside, mention);
  });
  const isKept = ELEMENTS.has(node.tagName) && (node.tagName !== "a" || destination(node.properties.href) !== null);
  return isKept ? [{ ...node, properties: kept(node), children }] : children;
}

/** The ends of lines are kept when a paragraph is shown: after a break there would be two. */
function withoutNewLine(node: ElementContent): ElementContent {
  return node.type === "text" ? { ...node, value: node.value.replace(/^\n/, "") } : node;
}

function isBreak(node: ElementContent | undefined): boolean {
  return node?.type === "element" && node.tagName === "br";
}

function kept({ tagName, properties }: Element): Properties {
  const name = KEPT[tagName];
  const value = name && properties[name];
  return value === undefined || value === null || value === "" ? {} : { [name as string]: value };
}

function picture({ properties: { src, alt } }: Element, within: string | null): ElementContent[] {
  const words = `Picture: ${alt || src}`;
  if (within !== null || destination(src) === null) return [text(words)];
  return [{ type: "element", tagName: "a", properties: { href: String(src) }, children: [text(words)] }];
}

function pointedOut(value: string, mention: RegExp): ElementContent[] {
  const parts = value.split(mention); // the names are at the odd places, since the expression has one group
  return parts.flatMap((part, index) => {
    if (part === "") return [];
    return index % 2 === 0
      ? [text(part)]
      : [{ type: "element", tagName: "mark", properties: {}, children: [text(part)] }];
  });
}

function text(value: string): ElementContent {
  return { type: "text", value };
}

/** Finds `@name` of these names, whatever their case, and with blanks, `-` or `_` between their words. */
export function mentionOf(names: readonly string[]): RegExp | null {
  const spellings = names
    .filter((name) => name.trim() !== "")
    .sort((one, other) => other.length - one.length)
    .map((name) =>
      name
        .trim()
        .split(/[\s_-]+/)
        .map(escaped)
        .join("[ _-]+"),
    );
  if (spellings.length === 0) return null;
  return new RegExp(
    `(?<![\\p{L}\\p{N}_\\\\])(@(?:${spellings.join("|")}))(?![\\p{L}\\p{N}_]|[-.][\\p{L}\\p{N}_])`,
    "giu",
  );
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
