"""The operations that units are made of: what is done with a row of which table, and which values that takes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from ai_whisperer.store import tables
from ai_whisperer.store.tables import Column, Kind, Table

_Kept = TypeVar("_Kept", bound=msgspec.Struct)


class Verb(Enum):
    """What is done with a row."""

    INSERT = "insert"
    """It is new; the unit is refused if there is one of its key."""
    PUT = "put"
    """It takes the place of the one of its key, if there is one."""
    UPDATE = "update"
    """Some columns change. The values of the key follow those of the columns."""
    COUNT = "count"
    """It is new, or is added to the one of its key: see `Count`."""
    DELETE = "delete"
    """It goes. The values are the key."""
    DELETE_SOME = "delete_some"
    """Rows go that have these values, of which one is the id of the session, and how many at most."""
    DELETE_BELOW = "delete_below"
    """Rows of a session go whose key ends below this number: its id, the number, and how many at most."""


class Operation:
    """Something that a unit may ask for; a store knows how it is done. Each is one object, and equal to itself only."""

    __slots__ = ()


class RowOperation(Operation, Generic[_Kept]):
    """An operation on a table of such records.

    `names` are those of the columns that change, or that are given, if not all are: see `left_out`.
    """

    __slots__ = ("_names", "table", "verb")

    def __init__(self, verb: Verb, table: Table[_Kept], names: str = "") -> None:
        self.verb = verb
        self.table = table
        self._names = tuple(names.split())

    @property
    def columns(self) -> tuple[Column, ...]:
        """Which values it takes."""
        table, names = self.table, self._names
        by_name = {column.name: column for column in table.columns}
        if self.verb in (Verb.INSERT, Verb.PUT, Verb.COUNT):
            return tuple(by_name[name] for name in names) or table.columns
        if self.verb is Verb.DELETE_SOME:
            named = tuple(by_name[name] for name in names or ("session_id",))
            return (*named, Column("limit", Kind.INTEGER, int))
        if self.verb is Verb.DELETE_BELOW:
            return by_name["session_id"], by_name[table.key[-1]], Column("limit", Kind.INTEGER, int)
        return tuple(by_name[name] for name in (*names, *table.key))

    @property
    def left_out(self) -> dict[str, Any]:
        """What a new row has in the columns that are not given: as a record has it by default, else an empty text."""
        given = {column.name for column in self.columns}
        defaults = self.table.defaults
        return {column.name: defaults.get(column.name, "") for column in self.table.columns if column.name not in given}

    def adder(self) -> Callable[[Any, _Kept], None]:
        """A method for units: adds this operation on a record to the changes."""
        return _Adder(self, "lambda unit, it: unit.changes.append((operation, {values}))")

    def adder_beside(self) -> Callable[[Any, str, _Kept], None]:
        """The same for a record that does not know its session."""
        return _Adder(self, "lambda unit, session_id, it: unit.changes.append((operation, {values}))")


class Count(RowOperation[_Kept]):
    """A row that is added to what is there: in the columns of these names the sum is kept, the least or the most."""

    __slots__ = ("least", "most", "summed")

    def __init__(self, table: Table[_Kept], *, summed: str, least: str = "", most: str = "") -> None:
        super().__init__(Verb.COUNT, table)
        self.summed = summed.split()
        self.least = least.split()
        self.most = most.split()


class _Adder:
    """Stands for a method until it is called first: then it is compiled, and takes its own place.

    It is one function with the values in it, since a task alone calls a dozen of these.
    """

    def __init__(self, operation: RowOperation[Any], source: str) -> None:
        self._operation = operation
        self._source = source

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, unit: Any, kind: type) -> Callable[..., None]:
        operation = self._operation
        setattr(kind, self._name, operation.table.compiled(self._source, operation.columns, operation=operation))
        method: Callable[..., None] = getattr(kind if unit is None else unit, self._name)
        return method

    def __call__(self, *_: Any) -> None:
        """It looks like what it stands for."""
        raise TypeError("An adder is called as a method of a unit.")


def _insert(table: Table[_Kept]) -> RowOperation[_Kept]:
    return RowOperation(Verb.INSERT, table)


def _put(table: Table[_Kept]) -> RowOperation[_Kept]:
    return RowOperation(Verb.PUT, table)


def _update(table: Table[_Kept], names: str) -> RowOperation[_Kept]:
    return RowOperation(Verb.UPDATE, table, names)


def _delete(table: Table[_Kept]) -> RowOperation[_Kept]:
    return RowOperation(Verb.DELETE, table)


INSERT_SESSION = _insert(tables.SESSION)
DELETE_SESSION = _delete(tables.SESSION)
PUT_DELETION = _put(tables.DELETION)
DELETE_DELETION = _delete(tables.DELETION)
DELETE_SOME = {table: RowOperation(Verb.DELETE_SOME, table) for table in tables.OF_A_SESSION}

INSERT_AGENT = _insert(tables.AGENT)
UPDATE_AGENT = _update(tables.AGENT, "state started sleep reason started_at paused_limit")
UPDATE_DEFINITION = _update(tables.AGENT, "definition own_tools")
DELETE_AGENT = _delete(tables.AGENT)
PUT_TOTALS = _put(tables.AGENT_TOTAL)

INSERT_TASK = _insert(tables.TASK)
COUNT_IN_THREAD = Count(tables.THREAD, summed="tasks", least="arrival first_at", most="last_at")
UPDATE_TASK = _update(
    tables.TASK,
    "state attempts progress_percent progress_note result error usage started_at finished_at not_before restarts",
)
UPDATE_JOINED = _update(tables.TASK, "joined_step")
UPDATE_DISMISSAL = _update(tables.TASK, "dismissed_at")
UPDATE_NOTES = _update(tables.TASK, "notes")
PUT_STEP = _put(tables.STEP)
BEGIN_STEP = RowOperation(Verb.PUT, tables.STEP, "session_id task_id number kind state call started_at said")
"""A step that is new and has begun has nothing else yet."""
PUT_COMPACTED = _put(tables.COMPACTED)

INSERT_MAIL = _insert(tables.MAIL)
UPDATE_MAIL = _update(tables.MAIL, "state task_id read_at")
PUT_LINK = _put(tables.LINK)
UPDATE_LINK = _update(tables.LINK, "count last_at")

PUT_TIMER = _put(tables.TIMER)
DELETE_TIMER = _delete(tables.TIMER)
PUT_WAIT = _put(tables.WAIT)
DELETE_WAIT = _delete(tables.WAIT)
PUT_APPROVAL = _put(tables.APPROVAL)
PUT_QUESTION = _put(tables.QUESTION)
PUT_LOCK = _put(tables.LOCK)
DELETE_LOCK = _delete(tables.LOCK)

INSERT_EVENT = _insert(tables.EVENT)
PUT_SCHEDULE = _put(tables.SCHEDULE)
DELETE_SCHEDULE = _delete(tables.SCHEDULE)
PUT_ROOM = _put(tables.ROOM)
INSERT_MESSAGE = _insert(tables.MESSAGE)
INSERT_ATTACHMENT = _insert(tables.ATTACHMENT)
PUT_LIMITS = _put(tables.LIMITS)

INSERT_NOTIFICATION = RowOperation(Verb.INSERT, tables.NOTIFICATION, "session_id seq at shape told")
PUT_SHAPE = _put(tables.SHAPE)

INSERT_FORK = _insert(tables.FORK)
PUT_HORIZON = _put(tables.HORIZON)
PUT_ERASURE = _put(tables.ERASURE)
DELETE_ERASURE = _delete(tables.ERASURE)
ERASE_TASK = _update(tables.TASK, "prompt progress_note result error notes parts erased_at")
ERASE_MAIL = _update(tables.MAIL, "subject body erased_at")
ERASE_EVENT = _update(tables.EVENT, "data erased_at")
ERASE_MESSAGE = _update(tables.MESSAGE, "text parts erased_at")
ERASE_NOTIFICATION = _update(tables.NOTIFICATION, "name cause params shape told")
DELETE_STEPS = RowOperation(Verb.DELETE_SOME, tables.STEP, "session_id task_id")
DELETE_APPROVALS = RowOperation(Verb.DELETE_SOME, tables.APPROVAL, "session_id task_id")
DELETE_QUESTIONS = RowOperation(Verb.DELETE_SOME, tables.QUESTION, "session_id task_id")
DELETE_ATTACHMENTS = RowOperation(Verb.DELETE_SOME, tables.ATTACHMENT, "session_id owner")
DELETE_COMPACTED_OF_THREAD = RowOperation(Verb.DELETE_SOME, tables.COMPACTED, "session_id agent_id thread_id")
DELETE_COMPACTED_OF_AGENT = RowOperation(Verb.DELETE_SOME, tables.COMPACTED, "session_id agent_id")
DELETE_NOTIFICATIONS = RowOperation(Verb.DELETE_BELOW, tables.NOTIFICATION)
