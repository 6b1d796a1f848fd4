"""How records look on the wire: camelCase, ids called by what they identify, and nothing lost on the way."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.limits import Limits
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition
from ai_whisperer.domain.tasks import TaskKind, TaskRecord, TaskState
from ai_whisperer.protocol import agents, mail, rooms, schedules, sessions, subscriptions, tasks
from ai_whisperer.protocol.catalog import METHODS
from ai_whisperer.protocol.method import Method
from ai_whisperer.protocol.subscriptions import frame_of
from ai_whisperer.protocol.wire import guide_type, wire_type
from tests import effort

AS_WRITTEN = (AgentDefinition, ScheduleDefinition)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | FRACTIONS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    int: NUMBERS,
    float: FRACTIONS,
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    type(None): st.none(),
    Any: JSON,
}


def some(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that stands in a record."""
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.builds(kind, **{name: some(hint) for name, hint in get_type_hints(kind).items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(some, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(some(arguments[0]), max_size=2)
    if origin is tuple:
        return st.lists(some(arguments[0]), max_size=2).map(tuple)
    if origin in (dict, Mapping):
        return st.dictionaries(some(arguments[0]), some(arguments[1]), max_size=2)
    raise AssertionError(f"There is no strategy for {kind}.")


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@settings(max_examples=effort.some(3), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_result_goes_to_json_and_back_unchanged(method: Method[Any, Any], data: st.DataObject) -> None:
    result = data.draw(some(method.result))
    written = method.write_result(result)
    json.loads(written)
    assert method.read_result(written) == result


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@settings(max_examples=effort.some(3), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_params_go_to_json_and_back_unchanged(method: Method[Any, Any], data: st.DataObject) -> None:
    params = data.draw(some(method.params))
    assert method.read_params(msgspec.json.encode(params)) == params


def structs_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in AS_WRITTEN:
            yield kind
            for hint in get_type_hints(kind).values():
                yield from structs_in(hint)
    else:
        for inner in get_args(kind):
            yield from structs_in(inner)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_keys_are_in_camel_case_but_for_the_states_of_the_guide(method: Method[Any, Any]) -> None:
    for struct in (*structs_in(method.params), *structs_in(method.wire)):
        for field in msgspec.structs.fields(struct):
            guide = method is agents.GET_AGENT_STATES and struct in set(structs_in(method.wire))
            shape = r"[a-z]+(_[a-z]+)*" if guide else r"[a-z][a-z0-9]*([A-Z][a-z0-9]*)*"
            assert re.fullmatch(shape, field.encode_name), f"{struct.__name__}.{field.encode_name}"


@pytest.mark.parametrize(
    ("method", "key"),
    [
        (agents.SEND_TASK, "taskId"),
        (mail.SEND_MAIL, "mailId"),
        (rooms.CREATE_ROOM, "roomId"),
        (rooms.POST_MESSAGE, "messageId"),
        (sessions.CREATE_SESSION, "sessionId"),
        (schedules.CREATE_SCHEDULE, "scheduleId"),
        (agents.BROADCAST_EVENT, "eventId"),
    ],
)
def test_a_record_has_its_id_under_the_name_by_which_params_give_it(method: Method[Any, Any], key: str) -> None:
    result_keys = {field.encode_name for field in msgspec.structs.fields(method.wire)}
    params_keys = {field.encode_name for field in msgspec.structs.fields(method.params)}
    assert key in result_keys & params_keys
    assert "id" not in result_keys


def test_threads_have_their_id_too() -> None:
    (thread,) = (each for each in structs_in(tasks.LIST_THREADS.wire) if each.__name__ == "ThreadSummary")
    assert "threadId" in {field.encode_name for field in msgspec.structs.fields(thread)}


def a_task() -> TaskRecord:
    return TaskRecord(
        session_id="s",
        id="t",
        agent_id="a",
        thread_id="t",
        kind=TaskKind.MAIL,
        prompt="Do it.",
        arrival=1,
        cause="user:user",
        state=TaskState.RUNNING,
    )


def test_a_task_on_the_wire() -> None:
    sent = json.loads(tasks.GET_TASK.write_result(a_task()))
    assert sent["taskId"] == "t"
    assert sent["kind"] == "mailbox_message"
    assert sent["progressPercent"] is None
    assert sent["usage"] == {
        "inputTokens": 0,
        "outputTokens": 0,
        "cachedTokens": 0,
        "costUsd": None,
        "modelCalls": 0,
        "toolCalls": 0,
        "wallSeconds": 0.0,
        "cpuSeconds": 0.0,
        "memoryBytes": 0,
        "mailsSent": 0,
        "unpricedTokens": 0,
    }


def test_the_states_of_agents_have_the_keys_of_the_guide() -> None:
    status = AgentStatus(
        agent_id="analyzer",
        state=AgentState.ACTIVE,
        current_task="mailbox_message",
        queue_size=2,
        sleeping_until=None,
        started=True,
        reason="",
        unread_mail=2,
        running_tasks=("t",),
        progress_percent=None,
        progress_note="",
        tasks=1,
        usage=Usage(input_tokens=3),
        name="analyzer",
        description="",
    )
    states = agents.AgentStates(agents={"analyzer": status}, last_seq=7)
    sent = json.loads(agents.GET_AGENT_STATES.write_result(states))
    assert (
        sent["agents"]["analyzer"].items()
        >= {
            "state": "active",
            "current_task": "mailbox_message",
            "queue_size": 2,
            "sleeping_until": None,
        }.items()
    )
    assert sent["agents"]["analyzer"]["usage"]["input_tokens"] == 3
    assert sent["last_seq"] == 7
    assert agents.GET_AGENT_STATES.read_result(json.dumps(sent).encode()) == states


def test_definitions_keep_the_keys_of_templates() -> None:
    definition = AgentDefinition(
        prompt="Work.",
        limits=Limits(max_queue_length=3),
        schedule=(ScheduleDefinition(interval_seconds=60.0, prompt="Look.", missed=MissedRuns.ALL),),
    )
    details = sessions.TemplateDetails(name="n", source="s", definition=definition)
    sent = json.loads(sessions.GET_TEMPLATE.write_result(details))
    assert sent["definition"]["limits"] == {"max_queue_length": 3}
    assert sent["definition"]["schedule"] == [{"interval_seconds": 60.0, "prompt": "Look.", "missed": "all"}]


def test_data_of_people_keeps_its_keys() -> None:
    note = Notification(seq=1, session_id="s", name="event.broadcast", cause="c", at=1.0, params={"my_key": {"a_b": 1}})
    page = subscriptions.NotificationList(notifications=[note], last_seq=1)
    sent = json.loads(subscriptions.LIST_NOTIFICATIONS.write_result(page))
    assert sent["notifications"][0]["params"] == {"my_key": {"a_b": 1}}


def test_a_notification_carries_its_session_number_and_cause_whatever_its_params_say() -> None:
    note = Notification(
        seq=5,
        session_id="s",
        name="agent.started",
        cause="request:1",
        at=2.0,
        params={"agentId": "a", "seq": 99, "sessionId": "forged", "cause": "forged"},
    )
    assert json.loads(frame_of(note)) == {
        "jsonrpc": "2.0",
        "method": "agent.started",
        "params": {"agentId": "a", "sessionId": "s", "seq": 5, "cause": "request:1", "at": 2.0},
    }


def test_the_notifications_of_the_spec_are_known() -> None:
    assert NOTIFICATIONS.keys() >= {
        "agent.started",
        "agent.paused",
        "agent.resumed",
        "agent.stopped",
        "agent.state_changed",
        "async.task.started",
        "async.task.completed",
        "async.task.continuation",
        "async.task.error",
        "async.task.delta",
    }


def test_the_wire_type_of_a_record_is_made_once() -> None:
    assert wire_type(TaskRecord) is wire_type(TaskRecord)
    assert wire_type(list[TaskRecord]) == list[wire_type(TaskRecord)]  # type: ignore[misc]
    assert guide_type(AgentStatus) is not wire_type(AgentStatus)


NOT_IN_PYTHON = {"from", "to"}
"""`from` is a word of the language, so the ends of a link are its `sender` and its `recipient`."""


def records_of(kind: Any, found: set[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """The records that a value of the type has in it."""
    for part in get_args(kind):
        records_of(part, found)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found and kind not in AS_WRITTEN:
        found.add(kind)
        for hint in get_type_hints(kind).values():
            records_of(hint, found)
    return found


def test_what_has_a_name_on_the_wire_has_the_same_in_python() -> None:
    found: set[type[msgspec.Struct]] = set()
    for method in METHODS.values():
        records_of(method.result, found)
    assert TaskRecord in found
    for record in found:
        for field in msgspec.structs.fields(wire_type(record)):
            name = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", field.encode_name)
            assert hasattr(record, name) or name in NOT_IN_PYTHON, f"{record.__name__} has no {name}"


def test_the_id_of_a_record_is_found_under_both_names() -> None:
    task = TaskRecord(
        session_id="s", id="t", agent_id="a", thread_id="t", kind=TaskKind.PROMPT, prompt="go", arrival=1, cause="user"
    )
    assert task.task_id == task.id == "t"
