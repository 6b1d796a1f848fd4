"""The operations of units in SQLite's words. Columns stand in the order of the tables in `migrations/`."""

from __future__ import annotations

from typing import Any, Final

from ai_whisperer.store.operations import Operation, RowOperation, Verb

FREE_PAGE: Final = Operation()
"""Gives the last page of the file back. It is under way until its cursor runs another statement: see `NOTHING`."""
NOTHING: Final = Operation()

_WITH_ROWID = frozenset({"task", "mail", "event"})
"""The tables whose rows SQLite itself numbers: that is the shorter key."""


def _statement_of(operation: RowOperation[Any]) -> str:
    table = operation.table
    name, key = table.name, " AND ".join(f"{column}=?" for column in table.key)
    changed = [column.name for column in operation.columns][: -len(table.key)]
    match operation.verb:
        case Verb.INSERT | Verb.PUT:
            how = "INSERT" if operation.verb is Verb.INSERT else "INSERT OR REPLACE"
            values = ["?"] * len(operation.columns) + ["NULL"] * len(table.later)
            return f"{how} INTO {name} VALUES ({','.join(values)})"
        case Verb.UPDATE:
            return f"UPDATE {name} SET {', '.join(f'{each}=?' for each in changed)} WHERE {key}"  # noqa: S608
        case Verb.RAISE:
            raised = ", ".join(f"{each}=max(coalesce({each}, 0), ?)" for each in changed)
            return f"UPDATE {name} SET {raised} WHERE {key}"  # noqa: S608
        case Verb.DELETE:
            return f"DELETE FROM {name} WHERE {key}"  # noqa: S608
        case Verb.DELETE_SOME:
            row = "rowid" if name in _WITH_ROWID else ", ".join(table.key)
            return f"DELETE FROM {name} WHERE ({row}) IN (SELECT {row} FROM {name} WHERE session_id=? LIMIT ?)"  # noqa: S608


class _Statements(dict[Operation, str]):
    """By operation; a statement is made when it is needed first."""

    def __missing__(self, operation: Operation) -> str:
        if not isinstance(operation, RowOperation):
            raise KeyError(operation)
        self[operation] = statement = _statement_of(operation)
        return statement


STATEMENTS: Final = _Statements({FREE_PAGE: "PRAGMA incremental_vacuum(1)", NOTHING: "SELECT 1 WHERE 0"})
