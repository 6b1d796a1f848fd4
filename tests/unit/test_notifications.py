"""Every notification is one record, which says all there is to say of it."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import fields

from ai_whisperer.cli.telling import line_of
from ai_whisperer.core.recent import RecentNotes
from ai_whisperer.core.telling import told
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.base import Told, notification
from ai_whisperer.domain.notifications.mail import MailChanged
from ai_whisperer.domain.notifications.tasks import TaskCancelled, TaskFailed
from ai_whisperer.domain.tasks import Failure, TaskState

PACKAGE = Path(__file__).parents[2] / "ai_whisperer"
EXAMPLES: dict[Any, Any] = {str: "x", int: 1, float: 1.0, bool: True, Any: None, type(None): None}
STAMPS = {"sessionId", "seq", "cause", "at"}

FAILED = TaskFailed(agent_id="a", task_id="t", state=TaskState.FAILED, error=Failure(code="x", message="why"))


def example_of(kind: Any) -> Any:
    """Some value of this type, as it is sent."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, Literal):
        return [example_of(arguments[0])] if origin is list else arguments[0]
    if origin is dict:
        return {"x": example_of(arguments[1])}
    if arguments:
        return example_of(arguments[0])
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    if issubclass(kind, StrEnum):
        return next(iter(kind)).value
    return {field.encode_name: example_of(field.type) for field in fields(kind)}


@pytest.mark.parametrize("kind", NOTIFICATIONS.values(), ids=list(NOTIFICATIONS))
def test_it_has_a_sentence_and_fields_as_they_are_sent(kind: type[Told]) -> None:
    assert NOTIFICATIONS[kind.wire_name] is kind
    assert kind.sentence().endswith(".")
    for field in fields(kind):
        assert re.fullmatch("[a-z]+([A-Z][a-z]+)*", field.encode_name), field.name
        assert field.encode_name not in STAMPS
        assert field.required or field.default is UNSET, "what is not left out is always said"


@cache
def words_of_those_who_tell() -> set[str]:
    parts = ("runtime", "tools", "server", "store", "client")
    sources = (path.read_text(encoding="utf-8") for part in parts for path in (PACKAGE / part).rglob("*.py"))
    return {word for source in sources for word in re.findall(r"\w+", source)}


@pytest.mark.parametrize("kind", NOTIFICATIONS.values(), ids=list(NOTIFICATIONS))
def test_somebody_tells_it(kind: type[Told]) -> None:
    assert kind.__name__ in words_of_those_who_tell()


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "without what may be left out"])
@pytest.mark.parametrize("kind", NOTIFICATIONS.values(), ids=list(NOTIFICATIONS))
def test_there_are_words_for_it_that_need_nothing_else(kind: type[Told], *, whole: bool) -> None:
    params = {
        field.encode_name: example_of(field.type) if whole or type(None) not in get_args(field.type) else None
        for field in fields(kind)
        if field.required or whole
    }
    assert told(kind.wire_name, params) is not None
    line = line_of(Notification(seq=1, session_id="s", name=kind.wire_name, cause="c", at=1.0, params=params))
    assert line is None or re.fullmatch(r" +1  \S+ +\S.*", line)


def test_its_params_are_what_is_written() -> None:
    wanted = {"agentId": "a", "taskId": "t", "state": "failed", "error": {"code": "x", "message": "why"}}
    assert FAILED.params() == msgspec.json.decode(msgspec.json.encode(FAILED)) == wanted
    assert all(type(key) is str for key in FAILED.params())


def test_what_is_not_said_is_left_out_and_words_of_python_are_called_as_on_the_wire() -> None:
    changed = MailChanged(mail_id="m", agent_id="a", state=MailState.READ, task_id=None)
    assert changed.params() == {"agentId": "a", "mailId": "m", "state": "read", "taskId": None}
    known = MailChanged(mail_id="m", agent_id="a", before=MailState.QUEUED, state=MailState.READ, task_id=None)
    assert known.params()["from"] == "queued"


def test_two_records_cannot_have_one_name() -> None:
    with pytest.raises(TypeError, match=r"Another cannot be 'async\.task\.error': TaskFailed is\."):

        @notification(TaskFailed.wire_name, "failed")
        class Another(Told, frozen=True, kw_only=True):
            pass


def test_a_notification_that_was_read_is_read_once() -> None:
    recent = RecentNotes()
    told = TaskCancelled(agent_id="a", task_id="t", reason="no")
    recent.extend([Note(seq=1, session_id="s", cause="c", at=1.0, told=told)], [100])
    (first,), (again,) = recent.page(0) or [], recent.page(0) or []
    assert first is again
    assert first == Notification(
        seq=1,
        session_id="s",
        name="async.task.cancelled",
        cause="c",
        at=1.0,
        params={"agentId": "a", "taskId": "t", "reason": "no"},
    )
