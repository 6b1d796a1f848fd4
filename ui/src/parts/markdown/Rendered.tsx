import type { Element, ElementContent } from "hast";
import {
  type ComponentProps,
  type HTMLAttributes,
  memo,
  type ReactNode,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import ReactMarkdown, { type Components, type ExtraProps } from "react-markdown";
import remarkGfm from "remark-gfm";
import { asWritten } from "./asWritten";
import { destination, mentionOf, tame } from "./tame";

type Props<Name extends keyof React.JSX.IntrinsicElements> = ComponentProps<Name> & ExtraProps;

const COPIED_MS = 2_000;

/** Names and ids may have a `~` in them: only two strike something out. */
const REMARK: ComponentProps<typeof ReactMarkdown>["remarkPlugins"] = [[remarkGfm, { singleTilde: false }]];

/** Every block has the direction of its own text, and none reaches into the next. */
function block(Block: "p" | "li" | "blockquote" | "h4" | "h5" | "h6" | "th" | "td") {
  return ({ node: _node, ...props }: HTMLAttributes<HTMLElement> & ExtraProps) => <Block dir="auto" {...props} />;
}

const COMPONENTS: Components = {
  a: Anchor,
  pre: Code,
  table: Table,
  p: block("p"),
  li: block("li"),
  blockquote: block("blockquote"),
  h1: block("h4"),
  h2: block("h5"),
  h3: block("h6"),
  h4: block("h6"),
  h5: block("h6"),
  h6: block("h6"),
  td: block("td"),
  th: block("th"),
  mark: ({ node: _node, ...props }: Props<"mark">) => <mark className="md-mention" {...props} />,
};

/** Markdown as elements. It is a module of its own, since the parser is large: `Markdown` loads it. */
export default memo(function Rendered({ text, names }: { text: string; names: string }) {
  const rehype = useMemo((): ComponentProps<typeof ReactMarkdown>["rehypePlugins"] => {
    return [asWritten, [tame, { mention: mentionOf(names === "" ? [] : names.split("\n")) }]];
  }, [names]);
  return (
    <ReactMarkdown remarkPlugins={REMARK} rehypePlugins={rehype} components={COMPONENTS} urlTransform={pageOnly}>
      {text}
    </ReactMarkdown>
  );
});

function pageOnly(address: string): string {
  return destination(address)?.href ?? "";
}

function Anchor({ href, children, node }: Props<"a">) {
  const url = destination(href);
  if (url === null) return <>{children}</>;
  return (
    <>
      <a href={url.href} title={url.href} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
      {node && isMisleading(textOf(node), url) && <span className="md-host"> ({url.host || url.pathname})</span>}
    </>
  );
}

/** Whether the words of a link look like an address, but of another place. */
function isMisleading(words: string, url: URL): boolean {
  const [, named] = /^\s*(?:\w+:\/\/|www\.|(?=[\w-]+(?:\.[\w-]+)+(?:[/:]|\s*$)))([^/\s?#]*)/i.exec(words) ?? [];
  if (named === undefined || named === "") return false;
  const host = url.host.replace(/^www\./, "");
  return url.protocol === "mailto:" ? false : named.toLowerCase().replace(/^www\./, "") !== host;
}

function Code({ node }: Props<"pre">) {
  const text = node ? textOf(node).replace(/\n$/, "") : "";
  const element = useRef<HTMLPreElement>(null);
  return (
    <div className="md-code">
      <CopyButton text={text} element={element} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keyboard */}
      <pre ref={element} dir="ltr" tabIndex={0}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

function CopyButton({ text, element }: { text: string; element: React.RefObject<HTMLElement | null> }) {
  const [said, setSaid] = useState("Copy");
  useEffect(() => {
    const timer = said === "Copy" ? undefined : setTimeout(() => setSaid("Copy"), COPIED_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const select = () => {
    if (element.current) getSelection()?.selectAllChildren(element.current);
    setSaid("Selected");
  };
  const copy = () => {
    // Browsers have a clipboard only for pages of this machine or of a secure connection.
    if (!navigator.clipboard) select();
    else navigator.clipboard.writeText(text).then(() => setSaid("Copied"), select);
  };
  return (
    <button type="button" className="md-copy" onClick={copy}>
      {said}
    </button>
  );
}

function Table({ children }: { children?: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keyboard
    <div className="md-table" tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

function textOf(node: Element | ElementContent): string {
  if (node.type === "text") return node.value;
  return node.type === "element" ? node.children.map(textOf).join("") : "";
}
