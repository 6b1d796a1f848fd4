"""The parts of a group in PostgreSQL's words: one statement with a part for each, which sends its rows as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

from ai_whisperer.store import tables
from ai_whisperer.store.operations import Verb
from ai_whisperer.store.postgresql.merging import Part
from ai_whisperer.store.tables import Kind, Row, Table

TYPES: Final = {
    Kind.TEXT: "text",
    Kind.JSON: "text",
    Kind.INTEGER: "bigint",
    Kind.BOOLEAN: "boolean",
    Kind.REAL: "double precision",
    Kind.BYTES: "bytea",
}
EPOCH: Final = "epoch"
"""The column of the log that says who wrote: which writer of the session it was, counted from the first."""

_HELD: Final = "WITH held AS MATERIALIZED (SELECT hold($1::text, $2::bigint, $3::bigint, $4::text[], $5::bigint[]))"
_HOLDING_VALUES: Final = 5
_ALREADY_HELD: Final = "WITH held AS MATERIALIZED (SELECT 1)"


def statement_of(parts: Sequence[Part], *, holds: bool) -> str:
    """One statement that does all of this; `holds` is whether it proves first that the writer may write.

    Each part waits for that proof: what was committed before would be taken for a row that is there already.
    """
    place = _HOLDING_VALUES + 1 if holds else 1
    words = [_HELD if holds else _ALREADY_HELD]
    for number, part in enumerate(parts):
        words.append(f"part_{number} AS ({_sql_of(part, place)})")
        place += len(part.columns)
    return ", ".join(words) + " SELECT 1 FROM held"


def arrays_of(parts: Iterable[Part], rows_of: dict[Part, list[Row]]) -> list[Sequence[Any]]:
    """The values for the statement: an array for each column of each part, empty for a part without rows."""
    values: list[Sequence[Any]] = []
    for part in parts:
        rows = rows_of.get(part)
        values += zip(*rows, strict=True) if rows else [()] * len(part.columns)
    return values


def names(columns: Iterable[str], of: str = "") -> str:
    """The columns as they stand in a statement, of a table or an alias."""
    return ", ".join(f'{of}"{name}"' for name in columns)


@cache
def _types(table: Table[Any]) -> dict[str, str]:
    types = {column.name: TYPES[column.kind] for column in table.columns}
    return {**types, "limit": "bigint", EPOCH: "bigint"}


def _sql_of(part: Part, place: int) -> str:
    types = _types(part.table)
    arrays = ", ".join(f"${place + number}::{types[name]}[]" for number, name in enumerate(part.columns))
    source = f"held, unnest({arrays}) AS given ({names(part.columns)})"
    table, key = f'"{part.table.name}"', part.table.key
    same = " AND ".join(f'kept."{name}"=given."{name}"' for name in key)
    match part.verb:
        case Verb.INSERT | Verb.PUT | Verb.COUNT:
            added = f"INSERT INTO {table} AS kept ({names(part.columns)}) SELECT {names(part.columns, 'given.')}"
            return f"{added} FROM {source}{_on_conflict(part)}"
        case Verb.UPDATE:
            changed = part.columns[: -len(key)]
            changes = ", ".join(f'"{name}"=given."{name}"' for name in changed)
            return f"UPDATE {table} AS kept SET {changes} FROM {source} WHERE {same}"
        case Verb.DELETE:
            return f"DELETE FROM {table} AS kept USING {source} WHERE {same}"
        case Verb.DELETE_SOME | Verb.DELETE_BELOW:
            which = [f'found."{name}"=given."{name}"' for name in part.columns[:-1]]
            if part.verb is Verb.DELETE_BELOW:
                which[-1] = which[-1].replace("=", "<")
            some = f'SELECT {names(key)} FROM {table} AS found WHERE {" AND ".join(which)} LIMIT given."limit"'
            going = " AND ".join(f'kept."{name}"=going."{name}"' for name in key)
            return f"DELETE FROM {table} AS kept USING {source}, LATERAL ({some}) AS going WHERE {going}"


def _on_conflict(part: Part) -> str:
    if part.verb is Verb.INSERT:
        return ""
    key = part.table.key
    if part.counting is None:
        changes = [f'"{name}"=excluded."{name}"' for name in part.columns if name not in key]
    else:
        summed, least, most = part.counting
        changes = [
            *(f'"{name}"=kept."{name}"+excluded."{name}"' for name in summed),
            *(f'"{name}"=least(kept."{name}", excluded."{name}")' for name in least),
            *(f'"{name}"=greatest(kept."{name}", excluded."{name}")' for name in most),
        ]
    return f" ON CONFLICT ({names(key)}) DO " + (f"UPDATE SET {', '.join(changes)}" if changes else "NOTHING")


def with_epoch(part: Part) -> Part:
    """The part as it is written: what goes into the log says who wrote it."""
    is_log = part.table is tables.NOTIFICATION and part.verb is Verb.INSERT
    return part._replace(columns=(*part.columns, EPOCH)) if is_log else part
