import { Component, type ReactNode, Suspense, useMemo, useState } from "react";
import { bytes } from "./format";
import { late } from "./late";
import { pieces, rendered } from "./markdown/limits";
import { visible } from "./markdown/visible";
import "./markdown/markdown.css";

export { visible } from "./markdown/visible";

const Rendered = late(() => import("./markdown/Rendered"));

interface MarkdownProps {
  text: string;
  /** Names of which `@name` is pointed out. */
  mentions?: readonly string[];
  /** More is being written: what is there already is not rendered again with each piece. */
  isGrowing?: boolean;
}

/** How much is shown, as it is, of a text that cannot be rendered from its first line on. */
const SHOWN_RAW = 1_000;

const NOBODY: readonly string[] = [];

/**
 * Text of models and people as Markdown. HTML in it is shown as text, pictures as links, links lead to pages and
 * mailboxes only, and nothing is loaded. What would take long to render is cut, with a way to see it all.
 */
export function Markdown({ text, mentions = NOBODY, isGrowing = false }: MarkdownProps) {
  const [isPlain, setIsPlain] = useState(false);
  const { parts, isCut } = useMemo(() => {
    const shown = rendered(text);
    const seen = visible(shown);
    const parts = isGrowing ? pieces(seen) : [seen];
    return { parts: seen === "" ? [] : parts, isCut: shown.length < text.length };
  }, [text, isGrowing]);
  const names = mentions.join("\n");
  if (isPlain) return <Plain text={text} onEnd={() => setIsPlain(false)} />;
  return (
    <div className="md">
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces are only added, at the end
        <OrPlain key={index} text={part}>
          <Rendered text={part} names={names} />
        </OrPlain>
      ))}
      {isCut && parts.length === 0 && (
        <pre className="md-plain md-raw" dir="auto">
          {visible(text.slice(0, SHOWN_RAW))}
        </pre>
      )}
      {isCut && (
        <p className="md-cut">
          This is only the beginning of {bytes(text.length)}.{" "}
          <button type="button" onClick={() => setIsPlain(true)}>
            Show all as plain text
          </button>
        </p>
      )}
    </div>
  );
}

function Plain({ text, onEnd }: { text: string; onEnd: () => void }) {
  return (
    <div className="md">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keyboard */}
      <pre className="md-plain md-plain-all" dir="auto" tabIndex={0}>
        {visible(text)}
      </pre>
      <p className="md-cut">
        <button type="button" onClick={onEnd}>
          Show the beginning, formatted
        </button>
      </p>
    </div>
  );
}

/** Shows the text as it is while the parser is being loaded, and when it fails. */
class OrPlain extends Component<{ text: string; children: ReactNode }, { failed: string | null }> {
  override state: { failed: string | null } = { failed: null };

  static getDerivedStateFromError() {
    return { failed: "" };
  }

  override componentDidCatch() {
    this.setState({ failed: this.props.text });
  }

  override componentDidUpdate() {
    const { failed } = this.state;
    if (failed && failed !== this.props.text) this.setState({ failed: null });
  }

  override render() {
    const plain = (
      <pre className="md-plain" dir="auto">
        {this.props.text}
      </pre>
    );
    return this.state.failed === null ? <Suspense fallback={plain}>{this.props.children}</Suspense> : plain;
  }
}
