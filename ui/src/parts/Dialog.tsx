import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import { Icon } from "./Icon";

const FIELDS = "[data-first], input:not([type=radio], [type=checkbox]), textarea, select";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}

/** A question or a form over the page. The browser keeps the focus in it, and ends it with Escape. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isPressedBeside = useRef(false); // a text that is marked from the inside out does not close it
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) {
      dialog.showModal();
      dialog.querySelector<HTMLElement>(FIELDS)?.focus(); // rather than the button that closes it
    }
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does for the keyboard what a click beside it does
    <dialog
      ref={element}
      className={wide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => {
        isPressedBeside.current = event.target === element.current;
      }}
      onClick={(event) => event.target === element.current && isPressedBeside.current && onClose()}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2 id={titleId}>{title}</h2>
          <button type="button" className="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ReactNode;
  /** The word on the button that does it. */
  action: string;
  onConfirm: (reason: string) => void;
  onClose: () => void;
  /** What the reason is for; without it none is asked for. */
  reasonLabel?: string;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, children, action, onConfirm, onClose, reasonLabel }: ConfirmProps) {
  const [reason, setReason] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onClose();
          onConfirm(reason);
        }}
      >
        <div className="dialog-text">{children}</div>
        {reasonLabel && (
          <label className="field">
            {reasonLabel}
            <input value={reason} onChange={(event) => setReason(event.target.value)} />
          </label>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="danger">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
