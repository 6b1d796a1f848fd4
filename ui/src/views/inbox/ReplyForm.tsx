import { useState } from "react";
import type { MailRecord } from "../../client/client";
import { useIdOf } from "../../parts/ids";
import { whyNotSent } from "../../parts/sending";
import { useName } from "../../state/names";
import { useIsLive, usePage, whyNotLive } from "../../state/page";
import { server } from "../../state/server";

/** An answer to a mail. If it cannot be sent, the text stays, and to try again sends it once. */
export function ReplyForm({ mail }: { mail: MailRecord }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const name = useName(mail.sender);
  const isLive = useIsLive();
  const [body, setBody] = useState("");
  const replyId = useIdOf({ mailId: mail.mailId, body });
  const [isSending, setIsSending] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const send = async () => {
    setError(null);
    setIsSending(true);
    try {
      await server().call("mail.reply", { sessionId, mailId: mail.mailId, body, priority: mail.priority, replyId });
      setBody("");
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setIsSending(false);
    }
  };
  return (
    <form
      className="inbox-reply"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {error && (
        <p className="inbox-failed" role="alert">
          {whyNotSent(error)}
        </p>
      )}
      <textarea
        rows={3}
        value={body}
        readOnly={isSending}
        aria-label={`Answer ${name}`}
        placeholder={`Answer ${name}`}
        onChange={(event) => {
          setBody(event.target.value);
          setError(null); // another text was not tried yet
        }}
      />
      <div className="dialog-actions">
        <button
          type="submit"
          className="primary"
          disabled={!isLive || isSending || body.trim() === ""}
          title={isLive ? undefined : whyNotLive()}
        >
          {error ? "Try again" : "Reply"}
        </button>
      </div>
    </form>
  );
}
