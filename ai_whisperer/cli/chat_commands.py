"""What can be said to a chat itself rather than to the agents in it: lines that begin with a slash."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ai_whisperer.cli.output import Output
from ai_whisperer.errors import InvalidInputError, NotFoundError, StateError

if TYPE_CHECKING:
    from ai_whisperer.cli.conversation import Conversation
    from ai_whisperer.client import Client
    from ai_whisperer.domain.approvals import ApprovalRecord

_COMMAND = re.compile(r"/(\w*)(?:\s+(.*))?\Z", re.DOTALL)
_HELP = {
    "/help": "shows this.",
    "/approve [ID]": "lets the tool call run that waits for your approval, exactly as it was shown.",
    "/refuse [REASON]": "refuses it; the agent is told so and continues without it.",
    "/stop": "cancels the answers that are under way, with everything that they have caused.",
}
_HINT = "A message that begins with a slash is written with two of them."


def command_in(line: str) -> tuple[str, str] | None:
    """The command of a line and what follows it; None for a message, such as one that begins with `/etc/hosts`."""
    found = _COMMAND.match(line.strip())
    return None if found is None else (found[1], (found[2] or "").strip())


def message_in(line: str) -> str:
    """The message of a line that has no command: one that begins with two slashes is meant with one."""
    return line[1:] if line.startswith("//") else line


class ChatCommands:
    """The commands of a chat."""

    def __init__(self, client: Client, conversation: Conversation, output: Output) -> None:
        self._client = client
        self._conversation = conversation
        self._output = output
        self._known: dict[str, Callable[[str], Awaitable[None]]] = {
            "help": self._help,
            "approve": self._approve,
            "refuse": self._refuse,
            "stop": self._stop,
        }

    async def obey(self, name: str, rest: str) -> None:
        """Do it; raises `InvalidInputError` with the commands that there are if this is none of them."""
        command = self._known.get(name)
        if command is None:
            names = ", ".join(f"/{each}" for each in self._known)
            raise InvalidInputError(f"There is no command '/{name}'. Commands: {names}. {_HINT}")
        await command(rest)

    async def _help(self, _: str) -> None:
        width = max(map(len, _HELP))
        self._output.note("\n".join(f"{name:<{width}}  {words}" for name, words in _HELP.items()) + f"\n{_HINT}")

    async def _approve(self, beginning: str) -> None:
        approval = self._waiting(beginning)
        record = await self._client.approve(approval.id, digest=approval.digest)
        self._output.note(f"{record.agent_id} may call {record.tool}.")

    async def _refuse(self, reason: str) -> None:
        record = await self._client.refuse(self._waiting("").id, reason=reason)
        self._output.note(f"{record.agent_id} may not call {record.tool}, and is told so.")

    def _waiting(self, beginning: str) -> ApprovalRecord:
        """The call that is meant, which was shown; raises `InvalidInputError` if that is not clear."""
        shown = self._conversation.approvals
        found = [each for each in shown if each.id.startswith(beginning)]
        if len(found) == 1:
            return found[0]
        if not shown:
            raise InvalidInputError("Nothing waits for your approval in this chat.")
        ids = ", ".join(each.id for each in shown)
        raise InvalidInputError(f"Several calls wait for your approval: {ids}. Name one: /approve ID")

    async def _stop(self, _: str) -> None:
        answers = self._conversation.awaited
        if not answers:
            raise InvalidInputError("Nobody is answering now.")
        for task_id in answers:
            with suppress(StateError, NotFoundError):  # it has ended meanwhile
                await self._client.cancel_tree(task_id, reason="stopped by the person in the chat")
