"""Tables: how records are kept. What a column holds follows from the field of the record that it is named after.

No dialect is spoken here. A row is a tuple of values in the order of the columns, with nested values as JSON text; how
a statement looks is for the part that knows the database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property
from types import CodeType, NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.attachments import AttachmentRecord
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.forks import Fork
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.retention import Erasure, Horizon
from ai_whisperer.domain.rooms import MessageRecord, RoomRecord
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.domain.snapshot import Link
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.timers import TimerRecord
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.domain.waits import WaitRecord
from ai_whisperer.store.shapes import Shape

Row = tuple[Any, ...]
_Kept = TypeVar("_Kept", bound=msgspec.Struct)

encode = msgspec.json.Encoder().encode
"""Makes JSON of a value; it is kept as text."""


class Kind(Enum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    JSON = "json"
    BYTES = "bytes"


_PLAIN = {str: Kind.TEXT, int: Kind.INTEGER, float: Kind.REAL, bool: Kind.BOOLEAN, bytes: Kind.BYTES}


class Column(msgspec.Struct, frozen=True):
    """A column, and the type of what it holds, without None."""

    name: str
    kind: Kind
    type: Any
    is_nullable: bool = False


class Table(Generic[_Kept]):
    """A table of records: a column for each field.

    The columns stand in the order of the fields, but for those in `first`. `beside` has the columns that no record
    has: they are given beside it and come before all others. A column in `drawn` shows a value from within a field,
    such as `origin.root_id`, to be found by it, and comes before that field. With `whole` the record is kept as one
    value in a column of this name.
    """

    def __init__(
        self,
        name: str,
        record: type[_Kept],
        *,
        key: str,
        first: str = "",
        beside: str = "",
        drawn: Mapping[str, str] | None = None,
        whole: str = "",
    ) -> None:
        self.name = name
        self.key = tuple(key.split())
        self._record = record
        self._whole = whole
        self._drawn = drawn or {}
        self._beside = tuple(beside.split())
        self._first = tuple(first.split())

    def compiled(self, source: str, columns: Sequence[Column], **names: Any) -> Callable[..., Any]:
        """The function of this source, in which `{values}` stands for the values of these columns of the record `it`.

        What is given beside a record has its name. The function raises what the encoder of JSON raises for what cannot
        be written.
        """
        values = "".join(f"{self._taken(column)}, " for column in columns)
        return _function(_compiled(source.format(values=f"({values})")), {**names, "encode": encode})

    @cached_property
    def read(self) -> Callable[[Row], _Kept]:
        """Makes a record of a row without what is given beside it. Raises `ValueError`, or what the decoder raises."""
        return self.reader()

    def reader(self, **decoders: Callable[[str], Any]) -> Callable[[Row], _Kept]:
        """The same, with another decoder for some fields."""
        code, names = self._reading
        return _function(code, {**names, **decoders})

    @cached_property
    def _reading(self) -> tuple[CodeType, dict[str, Any]]:
        """The code of the reader, and what its names mean: the converter of a field has the name of the field."""
        if self._whole:
            return _compiled("lambda row: record(row[0])"), {"record": msgspec.json.Decoder(self._record).decode}
        own = [
            (column, f"row[{index}]")
            for index, column in enumerate(self.columns[len(self._beside) :])
            if column.name not in self._drawn
        ]
        fields = ", ".join(f"{column.name}={_read(column, value)}" for column, value in own)
        names = {column.name: _converter(column) for column, _ in own}
        return _compiled(f"lambda row: record({fields})"), {**names, "record": self._record}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """In the order in which the table has them."""
        found = [Column(name, Kind.TEXT, str) for name in self._beside]
        if self._whole:
            return (*found, Column(self._whole, Kind.JSON, self._record))
        types = {field.name: field.type for field in msgspec.structs.fields(self._record)}
        shown_by = {path.partition(".")[0]: name for name, path in self._drawn.items()}
        for name in (*self._first, *(name for name in types if name not in self._first)):
            if name in shown_by:
                found.append(Column(shown_by[name], Kind.TEXT, str, is_nullable=True))
            found.append(_column(name, types[name]))
        return tuple(found)

    @property
    def columns_beside(self) -> int:
        """How many columns no record has; they come first."""
        return len(self._beside)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The value of each column whose field has one by default, and None for the others that may be empty."""
        fields = {field.name: field for field in msgspec.structs.fields(self._record)}
        found: dict[str, Any] = {}
        for column in self.columns:
            field = fields.get(column.name)
            if field is not None and not field.required:
                default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
                plain = encode(default).decode() if column.kind is Kind.JSON and default is not None else default
                found[column.name] = plain
            elif column.is_nullable:
                found[column.name] = None
        return found

    def _taken(self, column: Column) -> str:
        """The expression for the value of a column, of the record `it`."""
        name = column.name
        if name in self._beside:
            return name
        if name in self._drawn:
            path = self._drawn[name]
            return f"None if it.{path.partition('.')[0]} is None else it.{path}"
        value = "it" if name == self._whole else f"it.{name}"
        if column.kind is not Kind.JSON:
            return value
        return (
            f"None if {value} is None else encode({value}).decode()"
            if column.is_nullable
            else (f"encode({value}).decode()")
        )


def _compiled(source: str) -> CodeType:
    return compile(source, "<columns of a table>", "eval")


def _function(code: CodeType, names: dict[str, Any]) -> Callable[..., Any]:
    """The function of this code. Rows are made some ten thousand times a second, and a loop over columns would take
    half as long again.
    """
    made: Callable[..., Any] = eval(code, names)  # noqa: S307 - made of the names of fields and columns only
    return made


def _column(name: str, type_: Any) -> Column:
    members = get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)
    types = [member for member in members if member is not NoneType]
    only = types[0] if len(types) == 1 else type_
    is_text = isinstance(only, type) and issubclass(only, StrEnum)
    kind = Kind.TEXT if is_text else _PLAIN.get(only, Kind.JSON)
    return Column(name, kind, only, is_nullable=len(types) < len(members))


def _read(column: Column, value: str) -> str:
    """The expression for a field, of the value in its column; the converter has the name of the field."""
    if column.kind is Kind.JSON:
        return f"{column.name}({value}) if {value} else None" if column.is_nullable else f"{column.name}({value})"
    if column.kind is Kind.BOOLEAN:
        return f"bool({value})"
    if column.type is not str and column.kind is Kind.TEXT:
        return (
            f"None if {value} is None else {column.name}[{value}]"
            if column.is_nullable
            else (f"{column.name}[{value}]")
        )
    return value


def _converter(column: Column) -> Any:
    if column.kind is Kind.JSON:
        return msgspec.json.Decoder(column.type).decode
    return _Members(column.type) if column.kind is Kind.TEXT and column.type is not str else None


class _Members(dict[str, StrEnum]):
    """The members of an enum by their values, found sooner than by a call of the enum."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__((member.value, member) for member in kind)
        self._kind = kind

    def __missing__(self, value: str) -> StrEnum:
        return self._kind(value)  # raises ValueError


class Deletion(msgspec.Struct, frozen=True):
    """A session that is being deleted."""

    session_id: str


class KeptNotification(msgspec.Struct, frozen=True):
    """A notification: the number of its shape and its values, see `packing`.

    Those of earlier versions have a name, a cause and their params as JSON instead, which are empty in all others.
    """

    session_id: str
    seq: int
    name: str
    cause: str
    at: float
    params: str
    shape: int | None
    told: bytes | None


class CountedThread(msgspec.Struct, frozen=True):
    """A thread of an agent: how many tasks it has, the first `arrival`, and when the first and the last were made."""

    session_id: str
    agent_id: str
    id: str
    arrival: int
    tasks: int
    first_at: float
    last_at: float


SESSION = Table("session", SessionRecord, key="id")
DELETION = Table("deletion", Deletion, key="session_id")
AGENT = Table("agent", AgentRecord, key="session_id id")
AGENT_TOTAL = Table("agent_total", AgentTotals, key="session_id agent_id")
TASK = Table("task", TaskRecord, key="session_id id", first="id session_id", drawn={"root_id": "origin.root_id"})
THREAD = Table("thread", CountedThread, key="session_id agent_id id")
COMPACTED = Table("compacted", CompactedThread, key="session_id agent_id thread_id")
STEP = Table("step", StepRecord, key="session_id task_id number")
MAIL = Table("mail", MailRecord, key="session_id id", first="id session_id")
TIMER = Table("timer", TimerRecord, key="session_id id")
WAIT = Table("wait", WaitRecord, key="session_id id")
APPROVAL = Table("approval", ApprovalRecord, key="session_id id")
QUESTION = Table("question", QuestionRecord, key="session_id id")
LOCK = Table("lock", LockRecord, key="session_id name")
EVENT = Table("event", EventRecord, key="session_id id")
SCHEDULE = Table("schedule", ScheduleRecord, key="session_id id")
ROOM = Table("room", RoomRecord, key="session_id id")
ATTACHMENT = Table("attachment", AttachmentRecord, key="session_id owner number")
MESSAGE = Table("message", MessageRecord, key="session_id room_id number")
LIMITS = Table("limits", SessionLimits, key="session_id", beside="session_id", whole="stated")
LINK = Table("link", Link, key="session_id kind sender recipient", beside="session_id")
NOTIFICATION = Table("notification", KeptNotification, key="session_id seq")
SHAPE = Table("shape", Shape, key="number")
HORIZON = Table("horizon", Horizon, key="session_id")
ERASURE = Table("erasure", Erasure, key="session_id agent_id thread_id")
FORK = Table("fork", Fork, key="session_id")

OF_A_SESSION: tuple[Table[Any], ...] = (
    AGENT,
    AGENT_TOTAL,
    TASK,
    THREAD,
    COMPACTED,
    STEP,
    MAIL,
    TIMER,
    WAIT,
    APPROVAL,
    QUESTION,
    LOCK,
    EVENT,
    SCHEDULE,
    ROOM,
    MESSAGE,
    ATTACHMENT,
    LIMITS,
    LINK,
    NOTIFICATION,
    HORIZON,
    ERASURE,
    FORK,
)
"""What belongs to a session, and goes with it."""
