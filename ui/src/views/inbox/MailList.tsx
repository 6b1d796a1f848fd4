import { memo } from "react";
import { Link } from "wouter";
import { visible } from "../../parts/Markdown";
import { Empty } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { VirtualRows } from "../../parts/VirtualRows";
import { useAddress } from "../../shell/addresses";
import { useName } from "../../state/names";
import type { Line } from "./mails";

const ROW_HEIGHT = 60;

interface MailListProps {
  lines: readonly Line[];
  openId: string | undefined;
  isArchive: boolean;
}

export function MailList({ lines, openId, isArchive }: MailListProps) {
  if (lines.length === 0) {
    return isArchive ? (
      <Empty title="Nothing is archived">Mails that you archive leave the inbox and are kept here.</Empty>
    ) : (
      <Empty title="No mail">
        Agents write here when they want to tell you something, or answer a mail of yours. Write one to begin.
      </Empty>
    );
  }
  const shown = lines.findIndex(({ mailId }) => mailId === openId);
  return (
    <VirtualRows
      count={lines.length}
      rowHeight={ROW_HEIGHT}
      label="Mails"
      role="list"
      {...(shown === -1 ? {} : { shown })}
      row={(index) => {
        const line = lines[index];
        return line && <MailLink line={line} isOpen={line.mailId === openId} isArchive={isArchive} />;
      }}
    />
  );
}

interface MailLinkProps {
  line: Line;
  isOpen: boolean;
  isArchive: boolean;
}

const MailLink = memo(function MailLink({ line, isOpen, isArchive }: MailLinkProps) {
  const { mailId, sender, subject, priority, isRead, at } = line;
  const to = useAddress();
  const name = useName(sender);
  return (
    // biome-ignore lint/a11y/useSemanticElements: the virtual list is made of plain places
    <div role="listitem" className="panes-item">
      <Link
        href={to("inbox", mailId) + (isArchive ? "?show=archived" : "")}
        className={isRead ? "panes-link inbox-link" : "panes-link panes-unread inbox-link"}
        aria-current={isOpen ? "page" : undefined}
      >
        <span className="inbox-line">
          <bdi className="ellipsis">{visible(name)}</bdi>
          {!isRead && <span className="visually-hidden"> (unread)</span>}
          <span className="space" />
          <span className="quiet inbox-time">
            <Ago at={at} />
          </span>
        </span>
        <span className="inbox-line">
          {!isRead && <span className="inbox-dot" aria-hidden="true" />}
          <bdi className="ellipsis inbox-subject">{visible(subject) || "(no subject)"}</bdi>
          <span className="space" />
          {priority !== "normal" && <PriorityTag priority={priority} />}
        </span>
      </Link>
    </div>
  );
});

export function PriorityTag({ priority }: { priority: string }) {
  return (
    <span className="tag inbox-priority" data-priority={priority}>
      {priority}
    </span>
  );
}
