import { useActing } from "./acting";

interface ViewHeadProps {
  title: string;
  /** The words on the button for what is made in this view. */
  action: string;
  onAct: () => void;
}

/** The heading of a view, with its one action. */
export function ViewHead({ title, action, onAct }: ViewHeadProps) {
  const acting = useActing();
  return (
    <div className="view-head">
      <h1>{title}</h1>
      <span className="space" />
      <button type="button" className="primary" {...acting} onClick={onAct}>
        {action}
      </button>
    </div>
  );
}
