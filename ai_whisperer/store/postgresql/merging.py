"""Several writes to one row become one: a statement with many parts sees one moment, and may touch a row once.

Done one after the other or merged, writes have the same effect. Where two of them cannot be one, such as a row that is
inserted and deleted again, what follows goes into another wave: all waves of a group are one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from ai_whisperer.store.base import Change
from ai_whisperer.store.operations import Count, RowOperation, Verb
from ai_whisperer.store.tables import Row, Table

_WHOLE = (Verb.INSERT, Verb.PUT, Verb.COUNT)
"""Whose values are a whole row."""
_SOME = (Verb.DELETE_SOME, Verb.DELETE_BELOW)

Counting = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The columns of which the sum is kept, the least, or the most."""


class DuplicateRowError(Exception):
    """Two rows of one key are inserted."""


class Part(NamedTuple):
    """What is done with rows of a table. Values stand in the order of these columns; those of an update end in the key.

    `Verb.DELETE_SOME` and `Verb.DELETE_BELOW` end in how many rows go at most.
    """

    verb: Verb
    table: Table[Any]
    columns: tuple[str, ...]
    counting: Counting | None = None


Wave = dict[Part, list[Row]]
"""What can be done at one moment, in any order."""


class _Write(NamedTuple):
    """What is to be done with one row: the columns that are given, without the key for an update, and their values."""

    verb: Verb
    columns: tuple[str, ...]
    values: Row
    counting: Counting | None = None


class _How(NamedTuple):
    """An operation, taken apart. A row has the `usual` values in the columns that are `left_out`."""

    verb: Verb
    table: Table[Any]
    columns: tuple[str, ...]
    key_of: Callable[[Row], Row]
    left_out: tuple[str, ...]
    usual: Row
    counting: Counting | None


class _Rows:
    """What is to be done with the rows of one table in one wave."""

    __slots__ = ("some", "writes")

    def __init__(self) -> None:
        self.writes: dict[Row, _Write] = {}
        self.some: dict[tuple[RowOperation[Any], Row], int] = {}


def merged(changes: Iterable[Change]) -> list[Wave]:
    """The waves that have the effect of the changes one after the other; none for no changes.

    Raises `DuplicateRowError` where that is certain, as the database would.
    """
    waves: list[dict[Table[Any], _Rows]] = [{}]
    for operation, values in changes:
        if not isinstance(operation, RowOperation):
            raise TypeError(f"{operation!r} is not for this store.")
        how = _how(operation)
        rows = waves[-1].get(how.table)
        if rows is None:
            rows = waves[-1][how.table] = _Rows()
        if not _add(rows, operation, how, values):
            rows = _Rows()
            waves.append({how.table: rows})
            _add(rows, operation, how, values)
    return [wave for each in waves if (wave := _parts(each))]


def _add(rows: _Rows, operation: RowOperation[Any], how: _How, values: Row) -> bool:
    """Whether it could be added to what is done with these rows."""
    if how.verb in _SOME:
        return _add_some(rows, operation, how, values)
    key = how.key_of(values)
    if how.verb is Verb.UPDATE:
        given = len(how.columns) - len(key)
        write = _Write(how.verb, how.columns[:given], values[:given])
    elif how.verb is Verb.DELETE:
        write = _Write(how.verb, (), ())
    else:
        write = _Write(how.verb, how.columns + how.left_out, values + how.usual, how.counting)
    if rows.some and any(_may_match(some, wanted, how.table, key, write) for some, wanted in rows.some):
        return False
    known = rows.writes.get(key)
    if known is not None:
        both = _then(known, write, how.table)
        if both is None:
            return False
        write = both
    rows.writes[key] = write
    return True


def _add_some(rows: _Rows, operation: RowOperation[Any], how: _How, values: Row) -> bool:
    *_, limit = values
    wanted = values[:-1]
    for known, theirs in rows.some:
        if known is not operation or (theirs != wanted and how.verb is Verb.DELETE_BELOW):
            return False
    if any(_may_match(operation, wanted, how.table, key, write) for key, write in rows.writes.items()):
        return False
    rows.some[operation, wanted] = rows.some.get((operation, wanted), 0) + limit
    return True


def _may_match(some: RowOperation[Any], wanted: Row, table: Table[Any], key: Row, write: _Write) -> bool:
    """Whether the row may be among those that go: what is not known of it may be anything."""
    known = dict(zip(table.key, key, strict=True))
    if write.verb in _WHOLE:
        known = dict(zip(write.columns, write.values, strict=True))
    if some.verb is Verb.DELETE_BELOW:
        return bool(known["session_id"] == wanted[0] and known[table.key[-1]] < wanted[1])
    names = (column.name for column in some.columns[:-1])
    return all(name not in known or known[name] == value for name, value in zip(names, wanted, strict=True))


def _then(first: _Write, second: _Write, table: Table[Any]) -> _Write | None:
    """Both writes as one; None if they cannot be."""
    match first.verb, second.verb:
        case ((Verb.INSERT | Verb.PUT | Verb.COUNT), Verb.INSERT):
            raise DuplicateRowError(f"a row of {table.name} is inserted twice")
        case (Verb.INSERT, Verb.DELETE) | (Verb.COUNT, Verb.UPDATE) | (Verb.UPDATE, Verb.COUNT):
            return None
        case Verb.INSERT, Verb.PUT:
            return second._replace(verb=Verb.INSERT)
        case Verb.DELETE, (Verb.INSERT | Verb.COUNT):
            return second._replace(verb=Verb.PUT, counting=None)
        case Verb.DELETE, Verb.UPDATE:
            return first
        case ((Verb.INSERT | Verb.PUT), Verb.UPDATE):
            return first._replace(values=_changed(first, second))
        case Verb.UPDATE, Verb.UPDATE:
            return _both(first, second, table)
        case _, Verb.COUNT:
            return first._replace(values=_counted(first, second))
        case _:
            return second


def _changed(row: _Write, update: _Write) -> Row:
    changes = dict(zip(update.columns, update.values, strict=True))
    return tuple(changes.get(name, value) for name, value in zip(row.columns, row.values, strict=True))


def _both(first: _Write, second: _Write, table: Table[Any]) -> _Write:
    if first.columns == second.columns:
        return second
    changes = dict(zip(first.columns + second.columns, first.values + second.values, strict=True))
    columns = tuple(column.name for column in table.columns if column.name in changes)
    return _Write(Verb.UPDATE, columns, tuple(changes[name] for name in columns))


def _counted(row: _Write, count: _Write) -> Row:
    summed, least, most = count.counting or ((), (), ())
    there, more = (dict(zip(each.columns, each.values, strict=True)) for each in (row, count))
    changes = {
        **{name: there[name] + more[name] for name in summed},
        **{name: min(there[name], more[name]) for name in least},
        **{name: max(there[name], more[name]) for name in most},
    }
    return tuple(changes.get(name, there[name]) for name in row.columns)


def _parts(tables: dict[Table[Any], _Rows]) -> Wave:
    wave: Wave = {}
    for table, rows in tables.items():
        for key, write in rows.writes.items():
            part, values = Part(write.verb, table, write.columns, write.counting), write.values
            if write.verb in (Verb.UPDATE, Verb.DELETE):
                part, values = part._replace(columns=write.columns + table.key), values + key
            wave.setdefault(part, []).append(values)
        for (operation, wanted), limit in rows.some.items():
            some = Part(operation.verb, table, tuple(column.name for column in operation.columns))
            wave.setdefault(some, []).append((*wanted, limit))
    return wave


@cache
def _how(operation: RowOperation[Any]) -> _How:
    table, columns = operation.table, tuple(column.name for column in operation.columns)
    places = [columns.index(name) for name in table.key] if operation.verb not in _SOME else []
    left_out = operation.left_out if operation.verb in _WHOLE else {}
    counting = None
    if isinstance(operation, Count):
        counting = (tuple(operation.summed), tuple(operation.least), tuple(operation.most))
    return _How(operation.verb, table, columns, _picker(places), tuple(left_out), tuple(left_out.values()), counting)


def _picker(places: Sequence[int]) -> Callable[[Row], Row]:
    if len(places) == 1:
        place = places[0]
        return lambda values: (values[place],)
    pick: Callable[[Row], Row] = itemgetter(*places) if places else lambda _: ()
    return pick
