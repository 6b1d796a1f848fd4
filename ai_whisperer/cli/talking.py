"""What is typed in a chat: messages are said one after the other, commands are obeyed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ai_whisperer.cli.chat_commands import ChatCommands, command_in, message_in
from ai_whisperer.cli.conversation import Conversation
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.racing import first_of
from ai_whisperer.errors import ConflictError, InvalidInputError, NotFoundError, TooManyRequestsError

_REFUSED = (InvalidInputError, NotFoundError, ConflictError, TooManyRequestsError)


class Talk:
    """Takes the lines of a person, who is prompted for them, or of a program.

    A person is told of a line that is refused and asked for the next, and commands count at once. For a program a line
    that is refused ends it, and each waits until the one before was answered, or until an answer waits for an approval.
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
            command = command_in(line)
            if command is not None:
                if not self._with_person:
                    await first_of(self._messages.join(), self._conversation.asks())
                await self._obey(*command)
                self._prompt()
            elif line.strip():
                if not self._with_person:
                    await self._messages.join()
                self._unsaid += 1
                self._messages.put_nowait(message_in(line))
            else:
                self._prompt()
        await self._messages.join()
        if self._with_person:
            self._output.text("")

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

    async def _obey(self, name: str, rest: str) -> None:
        try:
            await self._commands.obey(name, rest)
        except _REFUSED as error:
            self._tell(error)

    def _tell(self, error: InvalidInputError | NotFoundError | ConflictError | TooManyRequestsError) -> None:
        if not self._with_person:
            raise error
        self._output.note(error.message)

    def _prompt(self) -> None:
        if self._with_person and not self._unsaid:
            self._output.piece("> ")
