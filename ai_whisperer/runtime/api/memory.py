"""The memory of agents, as people are shown it."""

from __future__ import annotations

from typing import cast

from ai_whisperer.core.text import check_text
from ai_whisperer.domain.memory import MemoryFile, MemoryText
from ai_whisperer.errors import InvalidInputError, ToolError, UnknownFileError
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.tasks import SessionWork
from ai_whisperer.tools.function import CancelSignal, in_thread

_MAX_PATH_BYTES = 4_000


class SessionMemory(SessionWork):
    """The part of the session manager that shows what agents keep in mind."""

    async def list_memory(self, agent_id: AgentRef) -> list[MemoryFile]:
        from ai_whisperer.tools.files.remembering import files_in, memory_of

        agent = self._find_agent(agent_id)
        try:
            values = {"workplace": memory_of(agent.workplace)}
            return cast("list[MemoryFile]", await in_thread(files_in, values, CancelSignal()))
        except ToolError as error:
            raise InvalidInputError(f"The memory of '{agent.agent_id}' cannot be read: {error.message}") from error

    async def read_memory(self, agent_id: AgentRef, path: str) -> MemoryText:
        from ai_whisperer.tools.files.remembering import memory_of, text_in

        check_text("path", path, max_bytes=_MAX_PATH_BYTES)
        agent = self._find_agent(agent_id)
        try:
            values = {"workplace": memory_of(agent.workplace), "path": path}
            found = cast("MemoryText | None", await in_thread(text_in, values, CancelSignal()))
        except ToolError as error:
            raise InvalidInputError(f"'{path}' of '{agent.agent_id}' cannot be read: {error.message}") from error
        if found is None:
            known = [each.path for each in await self.list_memory(agent_id)]
            names = ", ".join(known[:20]) or "none"
            raise UnknownFileError(f"The memory of '{agent.agent_id}' has no file '{path}'. There is: {names}.")
        return found
