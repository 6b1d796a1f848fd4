"""What the client looks at before it sends a call, so that what cannot be is refused in the words of the manager.

What is left is found by the server: which agents, tasks and the like there are, and how large text may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ai_whisperer.client.base import agent_name
from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.approvals import approval_state
from ai_whisperer.core.attachments import attachment_of, check_digest
from ai_whisperer.core.budgets import check_budget, deadline_after
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.core.locking import check_lock, check_lock_name, check_token
from ai_whisperer.core.mailbox import check_mail_text, mark_of, priority_of
from ai_whisperer.core.output_types import schema_of
from ai_whisperer.core.paging import checked_id, checked_kind, checked_limit, checked_position
from ai_whisperer.core.questions import question_state
from ai_whisperer.core.retention import age_in_seconds
from ai_whisperer.core.rooms import check_hop_limit, check_message_text, check_title, room_id_of
from ai_whisperer.core.schedules import check_schedule, schedule_from, schedule_id_of
from ai_whisperer.core.signals import check_event_data, check_event_name
from ai_whisperer.core.sleeping import seconds_of, sleep_plan
from ai_whisperer.core.tasks import delivery_of
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.schedules import MissedRuns
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.input_parts import files_of
from ai_whisperer.protocol.agents import AgentDetails, TaskBudget
from ai_whisperer.protocol.attachments import FilePart

_ANY_SIZE = 1 << 62
_MAX_ID_BYTES = 1000

Check = Callable[[Any], Any]
"""Takes what the caller gave and returns what is sent; raises a `WhispererError`."""


def _kept(check: Callable[[Any], object]) -> Check:
    """A check that lets what it finds nothing wrong with be sent as it is."""

    def checked(given: Any) -> Any:
        check(given)
        return given

    return checked


def _text(what: str, *, max_bytes: int = _ANY_SIZE) -> Check:
    return _kept(lambda given: check_text(what, given, max_bytes=max_bytes))


def _checked_template(template: Any) -> str:
    if not isinstance(template, str):
        raise InvalidInputError(f"Give a template's name, not {type(template).__name__}.")
    return template


def _written(config: AgentDefinition | Mapping[str, Any]) -> dict[str, Any]:
    """The definition as it is sent; raises `DefinitionError` that names the field."""
    definition = definition_from(config)
    stated = definition if isinstance(config, AgentDefinition) else dict(config)
    plain: dict[str, Any] = msgspec.to_builtins(stated)
    return plain


def _sent_budget(budget: Any) -> TaskBudget:
    check_budget(budget)
    return TaskBudget(max_tokens=budget.max_tokens, max_cost_usd=budget.max_cost_usd)


def _sent_parts(parts: Any) -> tuple[FilePart, ...]:
    """The images and files with their contents, looked at so that what is wrong is told before it is sent."""
    files = files_of(parts)
    for file in files:
        attachment_of(file, max_bytes=_ANY_SIZE)
    return tuple(FilePart(data=file.data, name=file.name, media_type=file.media_type) for file in files)


def _names(members: Any) -> tuple[str, ...]:
    if isinstance(members, str | AgentStatus | AgentDetails) or not isinstance(members, Iterable):
        raise InvalidInputError("The members must be a list of agents, even if it is only one.")
    return tuple(agent_name(member) for member in members)


def _check_thread(given: Any) -> None:
    """A message to a task at work may name a thread that the runtime has named; the server knows which there are."""
    checked_id(given.replace("~", "-") if isinstance(given, str) else given)


CHECKS: Mapping[str, Check] = {
    "after": checked_position,
    "agent_id": agent_name,
    "create_agent.agent_id": _kept(check_agent_id),
    "approval_id": _text("id of an approval", max_bytes=_MAX_ID_BYTES),
    "budget": _sent_budget,
    "config": _written,
    "broadcast_event.data": _kept(check_event_data),
    "get_attachment.digest": _kept(check_digest),
    "deliver": delivery_of,
    "digest": _text("digest", max_bytes=_MAX_ID_BYTES),
    "broadcast_event.event": _kept(check_event_name),
    "hop_limit": _kept(check_hop_limit),
    "kind": checked_kind,
    "limit": checked_limit,
    "members": _names,
    "missed": MissedRuns,
    "name": _kept(check_lock_name),
    "output": schema_of,
    "start_mcp_server.name": _text("name", max_bytes=200),
    "owner": agent_name,
    "parts": _sent_parts,
    "path": _text("path"),
    "priority": priority_of,
    "question_id": _text("id of a question", max_bytes=_MAX_ID_BYTES),
    "reason": _kept(check_reason),
    "reply_mail.body": _text("mail body"),
    "room": room_id_of,
    "schedule": schedule_id_of,
    "send_task.prompt": _text("prompt"),
    "list_approvals.state": approval_state,
    "list_questions.state": question_state,
    "mark_mail.state": mark_of,
    "template": _checked_template,
    "text": _kept(check_message_text),
    "older_than": age_in_seconds,
    "thread_id": checked_id,
    "send_task.thread_id": _kept(_check_thread),
    "delete_thread.thread_id": _text("id of a thread", max_bytes=_MAX_ID_BYTES),
    "timeout_seconds": _kept(lambda given: deadline_after(given, now=0.0)),
    "title": _kept(check_title),
    "to": agent_name,
    "token": _kept(check_token),
    "until": seconds_of,
    "wake_events": tuple,
}
"""By the name of the parameter, which means the same in all calls but for those that are named with it.

What may be left out as None is not looked at then."""


def _check_sleep(*, duration_seconds: Any, until: Any, wake_events: Any, **_: Any) -> None:
    until = None if until is None else seconds_of(until)
    now = until if until is not None else 0.0  # whether it is to come, the server's clock says
    sleep_plan(now, wall=now, duration_seconds=duration_seconds, until=until, wake_events=wake_events)


def _check_schedule(*, agent_id: Any, schedule_id: Any, **fields: Any) -> None:  # noqa: ARG001 - it is for itself
    name = None if agent_id is None else agent_name(agent_id)
    check_schedule(schedule_from(**fields), agent_id=name, max_prompt_bytes=_ANY_SIZE)


TOGETHER: Mapping[str, Callable[..., None]] = {
    "create_schedule": _check_schedule,
    "renew_lock": lambda *, name, ttl_seconds, **_: check_lock(name, ttl_seconds),
    "send_mail": lambda *, subject, body, **_: check_mail_text(subject, body, _ANY_SIZE),
    "sleep_agent": _check_sleep,
}
"""By the name of the call, what comes first: a look at arguments that belong together."""
