import { useState } from "react";
import type { TemplateEntry } from "../client/client";
import { Empty } from "../parts/Messages";

interface TemplateChoiceProps {
  templates: readonly TemplateEntry[];
  chosen: string;
  onChoose: (name: string) => void;
}

const FILTER_FROM = 8;

/** The templates with what they are for. Files that cannot be used are left out; they are told among the tools. */
export function TemplateChoice({ templates, chosen, onChoose }: TemplateChoiceProps) {
  const [query, setQuery] = useState("");
  const usable = templates.filter(({ error }) => error === null);
  const wanted = query.toLowerCase();
  const shown = usable.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted));
  if (usable.length === 0)
    return (
      <Empty title="There are no templates.">
        A template is a file with a name, a model, a prompt and tools. <code>whisperer templates --help</code> tells
        where they are kept.
      </Empty>
    );
  return (
    <div className="new-agent-templates">
      {usable.length > FILTER_FROM && (
        <input
          type="search"
          aria-label="Filter templates"
          placeholder="Filter templates"
          value={query}
          onChange={({ target }) => setQuery(target.value)}
        />
      )}
      <div className="new-agent-list" role="radiogroup" aria-label="Template">
        {shown.map(({ name, description, kind }) => (
          <label key={name} className="new-agent-template">
            <input type="radio" name="template" checked={name === chosen} onChange={() => onChoose(name)} />
            <span>
              <strong>{name}</strong> <span className="tag">{kind}</span>
              <span className="quiet new-agent-about">{description}</span>
            </span>
          </label>
        ))}
        {shown.length === 0 && <p className="quiet">No template matches.</p>}
      </div>
    </div>
  );
}
