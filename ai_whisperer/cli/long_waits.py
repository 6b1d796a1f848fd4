"""A word to whoever waits for what takes long to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ai_whisperer.cli.output import Output
from ai_whisperer.domain.tasks import StepRecord, StepState
from ai_whisperer.errors import WhispererError

if TYPE_CHECKING:
    from ai_whisperer.client import Client

T = TypeVar("T")
Word = Callable[[], Awaitable[str]]

SILENT_SECONDS = 2.0
"""So long a person waits without a word."""


async def with_a_word(work: Coroutine[Any, Any, T], word: Word, output: Output) -> T:
    """Do this; if it takes long, tell once what it waits for."""
    async with a_word_later(word, output):
        return await work


@asynccontextmanager
async def a_word_later(word: Word, output: Output) -> AsyncIterator[None]:
    """Tell the word after a while, if the block has not ended by then."""
    saying = asyncio.create_task(_say(word, output), name="a word about a long wait")
    try:
        yield
    finally:
        saying.cancel()
        await asyncio.gather(saying, return_exceptions=True)


async def _say(word: Word, output: Output) -> None:
    await asyncio.sleep(SILENT_SECONDS)
    with suppress(WhispererError):
        if told := await word():
            output.note(told)


async def tools_of(client: Client, tasks: Iterable[str]) -> str:
    """What is waited for if these tasks are to end, in a sentence."""
    journals = [await client.list_steps(task) for task in tasks]
    return waits_for(step for steps in journals for step in steps) or "The server is still working on it."


def waits_for(steps: Iterable[StepRecord]) -> str:
    """The tools of these steps that have not returned, in a sentence; empty if there are none."""
    calls = [step.call.name for step in steps if step.call is not None and step.state is StepState.STARTED]
    names = list(dict.fromkeys(calls))
    if not names:
        return ""
    why = "" if all(map(_can_be_interrupted, names)) else " A tool that is a plain function cannot be interrupted."
    return f"Waiting until these tools have ended: {', '.join(names)}.{why}"


def _can_be_interrupted(name: str) -> bool:
    """Whether the tool is known to end when its task does. Of one that was provided nobody knows here."""
    from ai_whisperer.tools.machine import MACHINE_TOOLS
    from ai_whisperer.tools.mcp.names import server_of

    return name in MACHINE_TOOLS or server_of(name) is not None
