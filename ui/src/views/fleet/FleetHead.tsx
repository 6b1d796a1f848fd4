import { Cell } from "./Cell";
import { COLUMNS, type Sort, sortAfter, sortText } from "./order";

interface FleetHeadProps {
  sort: Sort;
  onSort: (sort: string) => void;
  ticked: number;
  count: number;
  onTickAll: () => void;
}

/** The names of the columns; a click sorts by one. */
export function FleetHead({ sort, onSort, ticked, count, onTickAll }: FleetHeadProps) {
  const way = sort.isDown ? "descending" : "ascending";
  return (
    // biome-ignore-start lint/a11y/useSemanticElements: rows in sight only cannot be those of a table element
    // biome-ignore-start lint/a11y/useFocusableInteractive: what is in the cells has the focus
    <div role="rowgroup" className="fleet-head">
      <div role="row" aria-rowindex={1} className="fleet-row">
        <Cell name="tick" role="columnheader">
          <label>
            <input
              type="checkbox"
              aria-label="Choose all agents that are shown"
              checked={ticked > 0 && ticked === count}
              ref={(box) => {
                if (box) box.indeterminate = ticked > 0 && ticked < count;
              }}
              onChange={onTickAll}
            />
            <span className="fleet-head-words">Choose all</span>
          </label>
        </Cell>
        {COLUMNS.map(({ key, label, isNumber }) => {
          const isSorted = sort.column === key;
          return (
            <Cell name={key} role="columnheader" key={key} isNumber={isNumber} sort={isSorted ? way : undefined}>
              <button type="button" onClick={() => onSort(sortText(sortAfter(sort, key)))}>
                {label}
                <span aria-hidden="true">{isSorted && (sort.isDown ? " ↓" : " ↑")}</span>
              </button>
            </Cell>
          );
        })}
        <Cell name="more" role="columnheader">
          <span className="visually-hidden">Actions</span>
        </Cell>
      </div>
    </div>
    // biome-ignore-end lint/a11y/useSemanticElements: as above
    // biome-ignore-end lint/a11y/useFocusableInteractive: as above
  );
}
