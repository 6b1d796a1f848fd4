"""A month of twenty agents whose models take 8,000 tokens: people talk with them all day, and old things go at night.

Each agent has a conversation for each day and one that lasts the whole month. In these it is told things, reads long
pages, writes to others and gives work away.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from pathlib import Path
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.core.contexts import told_bytes, turn_bytes
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import ModelTooLongError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, prompt_of, round_of

AGENTS = [f"agent-{number:02}" for number in range(20)]
_HUNGRY, _SILENT = AGENTS[1::4], AGENTS[::4]
WINDOW_TOKENS = 8_000
CONTEXT: dict[str, Any] = {"window": WINDOW_TOKENS}
KEPT_DAYS = 7
DAY_SECONDS = 86_400.0
STANDING_EVERY = 20
"""One of so many exchanges belongs to the conversation that lasts the whole month."""
_WORDS = "The second module was built in the night, and its tests are green but for one. "
_PAGE_SIZE = 6_000


@tool
async def read_page(number: int) -> str:
    """Read a page of the book."""
    return f"Page {number}. " + (_WORDS * (_PAGE_SIZE // len(_WORDS)))


class Provider:
    """Models that refuse what is longer than their windows.

    Some need a third more tokens than is usual, and some twice as many; these do not even say how many they took.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.refused = 0
        self.summaries = 0

    def answer(self, request: ModelRequest) -> Answer | str:
        self.requests += 1
        tokens = self._tokens(request)
        if tokens > WINDOW_TOKENS:
            self.refused += 1
            raise ModelTooLongError
        if request.system.startswith("You write the summary"):
            self.summaries += 1
            return Answer(text="They built and tested the modules. " * 8, usage=Usage(input_tokens=tokens))
        said = _answer(request)
        used = Usage() if request.agent_id in _SILENT else Usage(input_tokens=tokens, output_tokens=100)
        return Answer(text=said.text, tool_calls=said.tool_calls, usage=used)

    @staticmethod
    def _tokens(request: ModelRequest) -> int:
        size = told_bytes(request.system, request.tools) + sum(map(turn_bytes, request.turns))
        return size // (2 if request.agent_id in _SILENT else 3 if request.agent_id in _HUNGRY else 4)


def _answer(request: ModelRequest) -> Answer:
    """What the exchange wants first, and then some words."""
    prompt = prompt_of(request)
    if round_of(request) == 0:
        other = AGENTS[(AGENTS.index(request.agent_id) + 1) % len(AGENTS)]
        if prompt.startswith("Read"):
            return call("read_page", number=1)
        if prompt.startswith("Write"):
            return call("send_mail", to_agent=other, subject="News", body=_WORDS)
        if prompt.startswith("Give"):
            return call("delegate_task", to_agent=other, task=f"Count the tests. {_WORDS}")
    return Answer(text=_WORDS * 4)


def _wanted(number: int) -> str:
    if number % 25 == 24:
        return "Give the counting away."
    return {3: "Read the next page.", 7: "Write to the next one."}.get(number % 10, "Listen.")


class Night(Record, frozen=True, kw_only=True):
    """How things stand when a day is over and what is old was pruned."""

    day: int
    stored_bytes: int
    pruned_bytes: int
    resident_bytes: int


class Month:
    """The month as it is seen from outside."""

    def __init__(self, manager: AsyncAgentSessionManager, *, exchanges_a_day: int, kept_days: int) -> None:
        self._manager = manager
        self.exchanges_a_day = exchanges_a_day
        self.kept_days = kept_days
        self.exchanges = 0
        self.lost: Counter[str] = Counter()
        self.nights: list[Night] = []

    async def prepare(self) -> None:
        for agent_id in AGENTS:
            tools = ["read_page", "send_mail", "check_mail", "delegate_task"]
            await self._manager.create_agent(agent_id, {"tools": tools, "context": CONTEXT})

    async def day(self) -> Night:
        """A day, and the night after it."""
        begun, number = asyncio.get_running_loop().time(), len(self.nights)
        await asyncio.gather(*(self._talk(agent_id, number) for agent_id in AGENTS))
        await self._manager.at_rest()
        self.lost.update(task.error.code for task in (await self._manager.dead_letters()).tasks if task.error)
        await asyncio.sleep(begun + DAY_SECONDS - asyncio.get_running_loop().time())
        stored = await self._manager.storage()
        await self.prune()
        pruned = await self._manager.storage()
        gc.collect()
        night = Night(
            day=number + 1,
            stored_bytes=stored.database_bytes,
            pruned_bytes=pruned.database_bytes,
            resident_bytes=_resident_bytes(),
        )
        self.nights.append(night)
        return night

    async def prune(self) -> None:
        await self._manager.prune(older_than=self.kept_days * DAY_SECONDS)

    async def _talk(self, agent_id: str, day: int) -> None:
        for number in range(self.exchanges_a_day):
            is_standing = number % STANDING_EVERY == STANDING_EVERY - 1
            thread = "standing" if is_standing else f"day-{day}"
            task = await self._manager.send_task(agent_id, f"{_wanted(number)} {_WORDS * 3}", thread_id=thread)
            ended = await self._manager.wait_task(task)
            self.exchanges += 1
            if ended.state is not TaskState.COMPLETED:
                self.lost[ended.error.code if ended.error else ended.state] += 1
                return  # an agent that loses more of them is stopped, and would be waited for without end


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
