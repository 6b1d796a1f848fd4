"""The tables as they are derived from the records, and as the migrations make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from ai_whisperer.domain.agents import SleepPlan
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.domain.tasks import Origin, Priority, TaskRecord
from ai_whisperer.store.base import Unit
from ai_whisperer.store.operations import UPDATE_MAIL
from ai_whisperer.store.sqlite.opening import migrate
from ai_whisperer.store.tables import DELETION, LIMITS, MAIL, OF_A_SESSION, SESSION, SHAPE, TASK, Kind, Row, Table

from .records import agent, mail, task

_TYPES = {
    Kind.TEXT: "TEXT",
    Kind.JSON: "TEXT",
    Kind.INTEGER: "INTEGER",
    Kind.BOOLEAN: "INTEGER",
    Kind.REAL: "REAL",
    Kind.BYTES: "BLOB",
}


@pytest.mark.parametrize("table", [SESSION, DELETION, SHAPE, *OF_A_SESSION], ids=lambda table: table.name)
def test_the_migrations_make_the_columns_of_the_records_in_their_order(table: Table[Any]) -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    made = list(connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table.name,)))
    derived = [(each.name, _TYPES[each.kind], not each.is_nullable) for each in table.columns]
    assert [(name, kind, bool(required)) for name, kind, required, _ in made] == derived
    key = sorted((place, name) for name, _, _, place in made if place)
    assert tuple(name for _, name in key) == table.key


def values_of(add: Callable[[Unit], None]) -> Row:
    """What the first change that is added to a unit has as its values."""
    unit = Unit()
    add(unit)
    return unit.changes[0][1]


def test_a_row_holds_plain_values_and_json_text() -> None:
    caused = replace(task(), origin=Origin(root_id="t0"))
    values = values_of(lambda unit: unit.insert_task(caused))
    row = dict(zip((column.name for column in TASK.columns), values, strict=True))
    assert row["id"] == "t1"
    assert row["root_id"] == "t0"
    assert row["origin"] == '{"root_id":"t0"}'
    assert row["result"] is None
    assert row["priority"] == "normal"


def test_a_record_is_read_as_it_was_written() -> None:
    full = replace(
        task(), origin=Origin(root_id="t0"), result=ChannelResponse(final="☃"), priority=Priority.HIGH, dismissed_at=3.5
    )
    assert TASK.read(values_of(lambda unit: unit.insert_task(full))) == full
    awaited = replace(mail(), awaited=True, state=MailState.READ)
    read: MailRecord = MAIL.read(values_of(lambda unit: unit.insert_mail(awaited)))
    assert (read, read.awaited, read.state) == (awaited, True, MailState.READ)


def test_an_update_takes_the_changed_columns_and_then_the_key() -> None:
    moved = replace(mail(), state=MailState.READ, task_id="t9", read_at=7.0)
    assert values_of(lambda unit: unit.update_mail(moved)) == ("read", "t9", 7.0, "s", "m1")
    assert [column.name for column in UPDATE_MAIL.columns] == ["state", "task_id", "read_at", "session_id", "id"]


def test_what_is_given_beside_a_record_comes_first() -> None:
    link = Link(kind=LinkKind.MAIL, sender="user", recipient="alice", count=1, last_at=2.0)
    assert values_of(lambda unit: unit.put_link("s", link)) == ("s", "mail", "user", "alice", 1, 2.0)
    stated = SessionLimits(max_tokens=1)
    assert values_of(lambda unit: unit.put_limits("s", stated)) == ("s", '{"max_tokens":1}')
    assert LIMITS.read(('{"max_tokens":1}',)) == stated


def test_a_value_that_is_no_member_of_an_enum_is_not_read() -> None:
    row = list(values_of(lambda unit: unit.insert_mail(mail())))
    row[[column.name for column in MAIL.columns].index("state")] = "lost"
    with pytest.raises(ValueError, match="'lost' is not a valid MailState"):
        MAIL.read(tuple(row))


def _unwritable_task(value: Any) -> TaskRecord:
    return replace(task(), result=ChannelResponse(final=value))


@pytest.mark.parametrize(
    "add",
    [
        lambda unit: unit.insert_task(_unwritable_task("\ud800")),
        lambda unit: unit.update_task(_unwritable_task("\ud800")),
        lambda unit: unit.update_agent(replace(agent(), sleep=SleepPlan(reason="\udcff"))),
        lambda unit: unit.insert_event(
            EventRecord(session_id="s", id="e", name="n", sender="user", cause="test", data=object())
        ),
    ],
)
def test_what_cannot_be_written_as_json_raises_at_once_and_leaves_the_unit_as_it_was(add: Any) -> None:
    unit = Unit()
    unit.insert_mail(mail())
    with pytest.raises((UnicodeEncodeError, TypeError)):
        add(unit)
    assert len(unit) == 1
