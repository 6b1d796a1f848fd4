"""The operations of units in SQLite's words. Columns stand in the order of the tables in `migrations/`."""

from __future__ import annotations

from typing import Any, Final

from ai_whisperer.store.operations import Count, Operation, RowOperation, Verb
from ai_whisperer.store.tables import Table

FREE_PAGE: Final = Operation()
"""Gives the last page of the file back. It is under way until its cursor runs another statement: see `NOTHING`."""
NOTHING: Final = Operation()

_WITH_ROWID = frozenset({"task", "mail", "event"})
"""The tables whose rows SQLite itself numbers: that is the shorter key."""


def _statement_of(operation: RowOperation[Any]) -> str:
    table = operation.table
    name, key = table.name, " AND ".join(f"{column}=?" for column in table.key)
    changed = [column.name for column in operation.columns][: -len(table.key)]
    if isinstance(operation, Count):
        return _counting(operation)
    match operation.verb:
        case Verb.INSERT | Verb.PUT:
            how = "INSERT" if operation.verb is Verb.INSERT else "INSERT OR REPLACE"
            return f"{how} INTO {name} VALUES ({_places(operation)})"
        case Verb.UPDATE:
            return f"UPDATE {name} SET {', '.join(f'{each}=?' for each in changed)} WHERE {key}"  # noqa: S608
        case Verb.DELETE:
            return f"DELETE FROM {name} WHERE {key}"  # noqa: S608
        case Verb.DELETE_SOME:
            return _deleting(table, " AND ".join(f"{column.name}=?" for column in operation.columns[:-1]))
        case Verb.DELETE_BELOW:
            return _deleting(table, f"session_id=? AND {table.key[-1]}<?")
        case Verb.COUNT:
            raise TypeError("Make it as a Count, which says how its columns are added.")


def _deleting(table: Table[Any], which: str) -> str:
    row = "rowid" if table.name in _WITH_ROWID else ", ".join(table.key)
    return f"DELETE FROM {table.name} WHERE ({row}) IN (SELECT {row} FROM {table.name} WHERE {which} LIMIT ?)"  # noqa: S608


def _counting(operation: Count[Any]) -> str:
    changes = [
        *(f"{each}={each}+excluded.{each}" for each in operation.summed),
        *(f"{each}=min({each}, excluded.{each})" for each in operation.least),
        *(f"{each}=max({each}, excluded.{each})" for each in operation.most),
    ]
    added = f"INSERT INTO {operation.table.name} VALUES ({_places(operation)})"  # noqa: S608
    return f"{added} ON CONFLICT DO UPDATE SET {', '.join(changes)}"


def _places(operation: RowOperation[Any]) -> str:
    left_out = operation.left_out
    return ",".join(_literal(left_out[each.name]) if each.name in left_out else "?" for each in operation.table.columns)


def _literal(value: str | float | None) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)


class _Statements(dict[Operation, str]):
    """By operation; a statement is made when it is needed first."""

    def __missing__(self, operation: Operation) -> str:
        if not isinstance(operation, RowOperation):
            raise KeyError(operation)
        self[operation] = statement = _statement_of(operation)
        return statement


STATEMENTS: Final = _Statements({FREE_PAGE: "PRAGMA incremental_vacuum(1)", NOTHING: "SELECT 1 WHERE 0"})
