import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { notify } from "../state/actions";
import { useActing, useReaching } from "./acting";
import { Dialog } from "./Dialog";

/** A sentence that says what is wrong with what was filled in; nothing if it is done. */
export type Wrong = string | undefined;

/** Which button was pressed: the value of another than the one that Asking has, or nothing. */
export interface Submitted {
  readonly submitter: string;
}

interface AskingProps {
  title: string;
  /** The word on the button that does it. */
  action: string;
  /** Does it. It fails, or answers with a sentence, if it could not be done: then everything that was typed stays. */
  onSubmit: (submitted: Submitted) => Wrong | Promise<Wrong>;
  onClose: () => void;
  /** What comes when it is done; it closes unless something else is said. */
  onDone?: () => void;
  children: ReactNode;
  wide?: boolean;
  /** What is told while it is under way, if that may take a while. */
  doing?: string;
  /** Whether it leaves the session as it is, so that it can be done in the past too. */
  isHarmless?: boolean;
}

/** A form over the page. It closes when what it asks for is done; why it could not be done is told in it. */
export function Asking(props: AskingProps) {
  const { title, action, onSubmit, onClose, onDone = onClose, children, wide = false, doing = "" } = props;
  const [acting, reaching] = [useActing(), useReaching()];
  const { problem, isBusy, submit, forget } = useSubmitting(onSubmit, onDone);
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a button that fills something in is clicked by the keyboard too */}
      <form
        method="dialog"
        noValidate
        onSubmit={submit}
        onChange={forget}
        onClick={({ target }) => (target as Element).closest("button[type=button]") && forget()}
      >
        {children}
        <p className="asking-problem" role="alert">
          {problem}
        </p>
        {doing !== "" && (
          <p className="quiet" role="status">
            {isBusy ? doing : ""}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" {...(props.isHarmless ? reaching : acting)} aria-disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function useSubmitting(onSubmit: AskingProps["onSubmit"], onDone: () => void) {
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const isThere = useRef(false);
  useEffect(() => {
    isThere.current = true;
    return () => {
      isThere.current = false;
    };
  }, []);
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const { submitter } = event.nativeEvent as SubmitEvent;
    if (isBusy) return;
    setProblem("");
    setIsBusy(true);
    const wrong = await sentenceOf(() => onSubmit({ submitter: (submitter as HTMLButtonElement | null)?.value ?? "" }));
    if (isThere.current) {
      setIsBusy(false);
      if (wrong === "") onDone();
      else setProblem(wrong);
    } else if (wrong !== "") notify(wrong, { isProblem: true }); // it was closed before it was known
  }
  return { problem, isBusy, submit, forget: () => setProblem("") };
}

async function sentenceOf(onSubmit: () => Wrong | Promise<Wrong>): Promise<string> {
  try {
    return (await onSubmit()) ?? "";
  } catch (error) {
    return (error as Error).message;
  }
}
