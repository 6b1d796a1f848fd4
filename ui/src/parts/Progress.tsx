/** How far a task is, as far as its agent tells. */
export function Progress({ percent, note }: { percent: number | null; note: string }) {
  if (percent === null) return <span className="quiet ellipsis">{note}</span>;
  const shown = Math.round(Math.min(100, Math.max(0, percent)));
  return (
    <span className="progress" title={note}>
      <progress max={100} value={shown} aria-label={note || "Progress"} />
      <span className="progress-text">{shown} %</span>
      {note && <span className="quiet ellipsis">{note}</span>}
    </span>
  );
}
