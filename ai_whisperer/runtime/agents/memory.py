"""What an agent is told of its memory as a task begins. The file tools are loaded when an agent has that."""

from __future__ import annotations

from ai_whisperer.domain.memory import MEMORY
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.tools.function import CancelSignal, in_thread


def keeps_memory(agent: Owner) -> bool:
    """Whether the agent is granted the memory, and not something else of that name."""
    found = agent.registry.find(MEMORY)
    if found is None:
        return False
    from ai_whisperer.tools.files.remembering import memory

    return found is memory


async def index_of(agent: Owner) -> str:
    """The agent's own notes, as far as there is room for them in a prompt."""
    from ai_whisperer.tools.files.remembering import index_in, memory_of

    values = {"workplace": memory_of(agent.workplace), "most_bytes": agent.limits.max_memory_index_bytes}
    return str(await in_thread(index_in, values, CancelSignal()))
