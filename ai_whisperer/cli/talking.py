"""What is typed in a chat: messages are said one after the other, commands are obeyed meanwhile.

Commands are lines that begin with a slash: they are for the chat itself rather than for the agents in it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from ai_whisperer.cli.conversation import Conversation
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.racing import first_of
from ai_whisperer.client import Client
from ai_whisperer.core.typed_answers import typed_line
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.errors import ConflictError, InvalidInputError, NotFoundError, StateError, TooManyRequestsError

_COMMAND = re.compile(r"/(\w*)(?:\s+(.*))?\Z", re.DOTALL)
_HELP = {
    "/help": "shows this.",
    "/approve [ID]": "lets the tool call run that waits for your approval, exactly as it was shown.",
    "/refuse [REASON]": "refuses it, or to answer a question; the agent is told so and continues without it.",
    "/answer [ID] ANSWER": "answers a question that an agent asks you; NAME=VALUE for each field if there are several.",
    "/stop": "cancels the answers that are under way, with everything that they have caused.",
}
_HINT = "A message that begins with a slash is written with two of them."
_REFUSED = (InvalidInputError, NotFoundError, ConflictError, TooManyRequestsError)


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
            "answer": self._answer,
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
        if not self._conversation.approvals and self._conversation.questions:
            question, _ = self._asked("")
            refused = await self._client.refuse_question(question.id, reason=reason)
            self._output.note(f"{refused.agent_id} is told that you do not want to answer.")
            return
        record = await self._client.refuse(self._waiting("").id, reason=reason)
        self._output.note(f"{record.agent_id} may not call {record.tool}, and is told so.")

    async def _answer(self, text: str) -> None:
        question, line = self._asked(text)
        await self._client.answer_question(question.id, typed_line(question.schema, line))

    def _asked(self, text: str) -> tuple[QuestionRecord, str]:
        """The question that is meant, which was shown, and the answer without its id; raises `InvalidInputError`."""
        shown = self._conversation.questions
        first, _, rest = text.partition(" ")
        named = [each for each in shown if each.id == first]
        if named:
            return named[0], rest
        if len(shown) == 1:
            return shown[0], text
        if not shown:
            raise InvalidInputError("Nobody asks you anything in this chat.")
        raise InvalidInputError(f"Several questions wait: {', '.join(each.id for each in shown)}. Write: /answer ID …")

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


class Talk:
    """Takes the lines of a person, who is prompted for them, or of a program.

    A person is told of a line that is refused and asked for the next, and commands count at once; what is typed while
    somebody is at an answer is heard before the next step of it. For a program a line
    that is refused ends it, and each waits until the one before was answered, or until an answer waits for an approval.
    While an agent asks something, a line is the answer to that.
    """

    def __init__(
        self, conversation: Conversation, commands: ChatCommands, output: Output, *, with_person: bool
    ) -> None:
        self._conversation = conversation
        self._commands = commands
        self._output = output
        self._with_person = with_person
        self._messages: asyncio.Queue[str] = asyncio.Queue()
        self._unsaid = 0

    async def take(self, lines: AsyncIterator[str]) -> None:
        """Say and do what the lines say, until they end and all was answered."""
        await first_of(self._speak(), self._read(lines))

    async def _read(self, lines: AsyncIterator[str]) -> None:
        self._prompt()
        async for line in lines:
            if not self._with_person and line.strip():
                await first_of(self._messages.join(), self._conversation.asks())
            command = command_in(line) or self._answer_in(line)
            if command is not None:
                await self._obey(*command)
                self._prompt()
            elif line.strip():
                if not self._with_person:
                    await self._messages.join()
                if self._with_person and self._conversation.awaited and self._messages.empty():
                    await self._interject(message_in(line))
                else:
                    self._unsaid += 1
                    self._messages.put_nowait(message_in(line))
            else:
                self._prompt()
        await self._messages.join()
        if self._with_person:
            self._output.text("")

    def _answer_in(self, line: str) -> tuple[str, str] | None:
        """The command that answers with the line what an agent asks, if one does. What is no answer is told so."""
        return ("answer", message_in(line)) if self._conversation.questions and line.strip() else None

    async def _speak(self) -> None:
        while True:
            message = await self._messages.get()
            try:
                await self._conversation.say(message)
            except _REFUSED as error:
                self._tell(error)
            self._unsaid -= 1
            self._prompt()
            self._messages.task_done()

    async def _interject(self, message: str) -> None:
        """Somebody is at an answer: the person need not wait for its end to say more."""
        try:
            await self._conversation.interject(message)
        except _REFUSED as error:
            self._tell(error)

    async def _obey(self, name: str, rest: str) -> None:
        try:
            await self._commands.obey(name, rest)
        except _REFUSED as error:
            self._tell(error)

    def _tell(self, error: InvalidInputError | NotFoundError | ConflictError | TooManyRequestsError) -> None:
        if not self._with_person:
            self._output.note("The chat ends at a line that is refused; those after it are not read.")
            raise error
        self._output.note(error.message)

    def _prompt(self) -> None:
        if self._with_person and not self._unsaid:
            self._output.piece("> ")
