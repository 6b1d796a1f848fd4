"""Accepting work from outside: checked, given an id once, durable before the caller is told."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from ai_whisperer.core.text import check_text
from ai_whisperer.errors import DuplicateIdError, InvalidInputError
from ai_whisperer.records import USER, MailRecord, Priority, TaskKind, TaskRecord
from ai_whisperer.runtime.agent_session import AgentSession
from ai_whisperer.runtime.workspace import Workspace

_MAX_ID_CHARACTERS = 200

_Accepted = TypeVar("_Accepted", TaskRecord, MailRecord)


class Intake:
    """Takes tasks and mail from people and programs.

    A caller that gives an id may call again with the same content when it does not know whether it was heard: the
    work is accepted once.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._in_flight: dict[str, tuple[TaskRecord | MailRecord, asyncio.Future[None]]] = {}

    async def task(
        self,
        agent: AgentSession,
        prompt: str,
        *,
        priority: Priority,
        thread_id: str | None,
        task_id: str | None,
        cause: str,
    ) -> TaskRecord:
        if not prompt.strip():
            raise InvalidInputError("The prompt is empty. Say what the agent is to do.")
        check_text("prompt", prompt, max_bytes=agent.record.definition.limits.max_prompt_bytes)
        known = self._known(task_id, TaskRecord)
        if known is not None:
            same = (known.agent_id, known.prompt) == (agent.agent_id, prompt)
            return await self._again(known, same=same)
        agent.check_room()
        new_id = task_id or self._workspace.ids.new()
        task = TaskRecord(
            session_id=self._workspace.session_id,
            id=new_id,
            agent_id=agent.agent_id,
            thread_id=_checked_id(thread_id) or new_id,
            kind=TaskKind.PROMPT,
            prompt=prompt,
            arrival=self._workspace.next_arrival(),
            cause=cause,
            priority=priority,
            created_at=self._workspace.clock.now(),
        )
        decision = self._workspace.decide(cause)
        agent.accept_task(decision, task)
        await self._durable(task, decision.submit(), named=task_id is not None)
        return task

    async def mail(
        self,
        to: str,
        *,
        subject: str,
        body: str,
        priority: Priority,
        thread_id: str | None,
        mail_id: str | None,
    ) -> MailRecord:
        known = self._known(mail_id, MailRecord)
        if known is not None:
            recipient = self._workspace.book.resolve_recipient(to)
            same = (known.sender, known.recipient, known.subject, known.body) == (USER, recipient, subject, body)
            return await self._again(known, same=same)
        decision = self._workspace.decide(f"user:{USER}")
        mail = self._workspace.post.send(
            decision,
            sender=USER,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=_checked_id(thread_id),
            mail_id=mail_id,
        )
        await self._durable(mail, decision.submit(), named=mail_id is not None)
        return mail

    def _known(self, given_id: str | None, kind: type[_Accepted]) -> _Accepted | None:
        """What was accepted under this id before, on disk or on its way there."""
        if _checked_id(given_id) is None or given_id is None:
            return None
        in_flight = self._in_flight.get(given_id)
        if in_flight is not None and isinstance(in_flight[0], kind):
            return in_flight[0]
        store, session_id = self._workspace.store, self._workspace.session_id
        found = store.task(session_id, given_id) if kind is TaskRecord else store.mail(session_id, given_id)
        if found is None and store.id_taken(task_id=given_id, mail_id=given_id):
            raise DuplicateIdError(f"The id '{given_id}' is taken. Choose another; nothing was accepted.")
        return found if isinstance(found, kind) else None

    async def _again(self, known: _Accepted, *, same: bool) -> _Accepted:
        if not same:
            raise DuplicateIdError(
                f"The id '{known.id}' was used for something else. Choose another; nothing was accepted."
            )
        in_flight = self._in_flight.get(known.id)
        if in_flight is not None:
            await asyncio.shield(in_flight[1])
        return known

    async def _durable(self, accepted: TaskRecord | MailRecord, durable: asyncio.Future[None], *, named: bool) -> None:
        if not named:
            await durable
            return
        self._in_flight[accepted.id] = (accepted, durable)
        durable.add_done_callback(lambda _: self._in_flight.pop(accepted.id, None))
        await asyncio.shield(durable)


def _checked_id(given: str | None) -> str | None:
    if given is None:
        return None
    if not given.strip() or len(given) > _MAX_ID_CHARACTERS or not given.isprintable() or "~" in given:
        raise InvalidInputError(
            f"{given[:50]!r} cannot be an id: use 1 to {_MAX_ID_CHARACTERS} printable characters, without '~'."
        )
    return given
