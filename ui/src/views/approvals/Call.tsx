import { LongText } from "../../parts/LongText";
import { useSelection } from "../../shell/addresses";
import { argumentsOf } from "./arguments";

/** What exactly a tool is called with. Pretty or raw is one choice for all calls on the page. */
export function Call({ text, digest }: { text: string; digest: string }) {
  const [form, setForm] = useSelection("arguments", "pretty");
  const shown = form === "raw" ? null : argumentsOf(text);
  return (
    <div className="approvals-call">
      <div className="approvals-forms">
        {(["pretty", "raw"] as const).map((each) => (
          <button key={each} type="button" aria-pressed={form === each} onClick={() => setForm(each)}>
            {each === "pretty" ? "Pretty" : "Raw"}
          </button>
        ))}
        <span className="quiet approvals-digest">
          digest <code>{digest}</code>
        </span>
      </div>
      {shown === null && <LongText text={text} mono />}
      {shown?.length === 0 && <p className="quiet">It is called without arguments.</p>}
      {shown?.map(({ name, value }) => (
        <div key={name} className="approvals-argument">
          <p className="mono">{name}</p>
          <LongText text={value} mono />
        </div>
      ))}
    </div>
  );
}
