import { useId } from "react";
import { visible } from "../../parts/markdown/visible";
import type { FormField, Typed } from "./form";

interface FieldProps {
  readonly field: FormField;
  readonly typed: Typed;
  /** What the server said is wrong with it. */
  readonly complaint: string | undefined;
  readonly isDisabled: boolean;
  readonly onType: (typed: Typed) => void;
}

/** One field of the form of a question, with what is wrong with it. */
export function Field({ field, typed, complaint, isDisabled, onType }: FieldProps) {
  const told = useId();
  const { kind, label, hint, isRequired, options } = field;
  const common = {
    disabled: isDisabled,
    "aria-invalid": complaint !== undefined,
    "aria-describedby": complaint === undefined ? undefined : told,
  };
  const name = `${visible(label)}${isRequired ? "" : " (if you like)"}`;
  const below = (
    <>
      {hint !== "" && <span className="quiet questions-hint">{visible(hint)}</span>}
      {complaint !== undefined && (
        <span id={told} className="questions-complaint">
          It {visible(complaint)}.
        </span>
      )}
    </>
  );
  if (kind === "choices") {
    const chosen = typeof typed === "object" ? typed : [];
    return (
      <fieldset className="questions-choices" disabled={isDisabled}>
        <legend>{name}</legend>
        {options.map((option, place) => (
          <label key={String(option)} className="choice">
            <input
              type="checkbox"
              checked={chosen.includes(place)}
              onChange={({ target }) =>
                onType(target.checked ? [...chosen, place] : chosen.filter((each) => each !== place))
              }
            />
            {visible(String(option))}
          </label>
        ))}
        {below}
      </fieldset>
    );
  }
  if (kind === "choice" || kind === "boolean") {
    const shown = kind === "boolean" ? (["true", "false"] as const) : options.map((_, place) => String(place));
    return (
      <label className="field">
        {name}
        <select {...common} value={String(typed)} onChange={({ target }) => onType(target.value)}>
          <option value="">{isRequired ? "Choose…" : "—"}</option>
          {shown.map((value, place) => (
            <option key={value} value={value}>
              {kind === "boolean" ? YES_OR_NO[place] : visible(String(options[place]))}
            </option>
          ))}
        </select>
        {below}
      </label>
    );
  }
  if (kind === "string") {
    const text = String(typed);
    const rows = Math.min(6, text.split("\n").length);
    return (
      <label className="field">
        {name}
        <textarea {...common} rows={rows} value={text} onChange={({ target }) => onType(target.value)} />
        {below}
      </label>
    );
  }
  const inputMode = kind === "integer" ? "numeric" : "decimal";
  return (
    <label className="field">
      {name}
      <input {...common} inputMode={inputMode} value={String(typed)} onChange={({ target }) => onType(target.value)} />
      {below}
    </label>
  );
}

const YES_OR_NO = ["Yes", "No"];
