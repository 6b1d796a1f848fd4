"""What is outside of a session in a random run: the models, the tools, the faults, and what the users were told."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import zlib
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ai_whisperer import tool
from ai_whisperer.domain.conversation import Answer, ToolTurn, UserTurn
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import ModelRefusedError, ModelServerError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.task import RunningTask
from ai_whisperer.tools.function import ToolContext
from tests.simulation.stage import calls, prompt_of, round_of

AGENTS = ("ann", "ben", "cid", "dot")
EVENTS = ("data_ready", "all_clear", "help_requested")
LOCKS = ("north", "south", "west")
THINGS = ("ledger", "map", "tower")
ALWAYS_ASKS = "costly"
"""The tool of which no call runs without a person's approval. Of `effect` people are asked at times."""

QUESTION = {"properties": {"number": {"type": "integer"}}, "required": ["number"]}
"""The form of the questions that agents ask people."""

STEERING = "not so deep, "
"""How messages to a task at work begin; the id of the task that they are follows."""

DEEPEST = 3
"""What is caused by something so deep causes nothing more: chatter dies out."""

Call = tuple[str, dict[str, Any]]


class PlannedFaultError(Exception):
    """A loop breaks because the run wants it to."""


class World:
    """What happens outside of the session, and what its users were told: it survives every crash."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked: Counter[str] = Counter()
        self.settled: set[str] = set()
        self.asked_again: list[str] = []
        self.effects: Counter[str] = Counter()
        self.repeatable_effects: Counter[str] = Counter()
        self.shown_mail: set[str] = set()
        self.accepted_tasks: set[str] = set()
        self.accepted_mails: set[str] = set()
        self.accepted_events: set[str] = set()
        self.accepted_answers: dict[str, int] = {}
        self.steered: set[str] = set()
        self.heard: dict[str, set[str]] = {}
        self.heard_twice: list[str] = []
        self._touched: dict[str, list[str]] = {name: [] for name in THINGS}
        self.collisions: list[str] = []
        self.opened_at: list[float] = []
        self.opened_after: list[int] = []
        self.closed_at: list[float] = []
        self.outside = {"effect", "repeatable", ALWAYS_ASKS}
        self.is_strict = False

    def chance_for(self, key: str) -> random.Random:
        """The same for the same question, so that a repeated request is answered alike."""
        return random.Random(zlib.crc32(f"{self.seed}/{key}".encode()))

    def answer(self, request: ModelRequest) -> Answer | str:
        self.note(request)
        chance = self.chance_for(f"{request.step_id}/{request.attempt}")
        if chance.random() < 0.1:
            raise ModelServerError
        if chance.random() < 0.02:
            raise ModelRefusedError
        if round_of(request) < 3 and chance.random() < 0.6:
            return calls(*(self._some_call(request, chance, index) for index in range(chance.choice((1, 1, 2, 3)))))
        if chance.random() < 0.1:
            return "more\n[CONTINUE]"
        return "done " * (100 if chance.random() < 0.1 else 1)

    def note(self, request: ModelRequest) -> None:
        """Keep in mind what a model was asked and shown."""
        self.asked[request.step_id] += 1
        if request.step_id in self.settled:
            self.asked_again.append(request.step_id)
        for turn in request.turns:
            text = turn.text if isinstance(turn, UserTurn) else turn.content if isinstance(turn, ToolTurn) else ""
            self.shown_mail.update(_mail_ids(text))
        self._hear([turn.text for turn in request.turns if isinstance(turn, UserTurn)], request.step_id)

    def _hear(self, told: list[str], step_id: str) -> None:
        """Note which messages to tasks at work a model is shown, by the prompts that they are."""
        steering = [text for text in told if text.startswith(STEERING)]
        self.heard_twice += [text for text, count in Counter(steering).items() if count > 1]
        for text in steering:
            self.heard.setdefault(text, set()).add(step_id)

    def _some_call(self, request: ModelRequest, chance: random.Random, index: int) -> Call:
        mail_ids = [found for turn in request.turns if isinstance(turn, UserTurn) for found in _mail_ids(turn.text)]
        options: list[Call] = [
            ("effect", {"seconds": chance.random() * 5, "touches": _some_touches(chance)}),
            ("repeatable", {"seconds": chance.random() * 5, "touches": _some_touches(chance)}),
            ("check_mail", {}),
            chance.choice((("report_progress", {"percent": 50}), ("nonsense", {}))),
            self.lock_call(chance),
            self.lock_call(chance),
            (ALWAYS_ASKS, {"seconds": 1.0, "touches": chance.choice(([], ["write ledger"], ["read ledger"]))}),
            ("ask_user", {"question": "q?", "schema": QUESTION, "timeout_seconds": chance.choice((None, 1.0, 15.0))}),
        ]
        depth = _depth_of(request)
        if depth < DEEPEST and chance.random() < 0.6 / (1 + depth):
            options += self._talk(request, chance, f"depth={depth + 1} {request.step_id}/{index}")
        if mail_ids:
            options.append(("reply_mail", {"mail_id": mail_ids[-1], "body": f"b depth={depth + 1}"}))
        return chance.choice(options)

    def lock_call(self, chance: random.Random) -> Call:
        name = chance.choice(LOCKS)
        if chance.random() < 0.3:
            return ("release_lock", {"name": name})
        times = {"ttl_seconds": chance.choice((1.0, 5.0, 20.0)), "wait_seconds": chance.choice((None, 0.5, 10.0))}
        return ("acquire_lock", {"name": name, **times})

    def question(self, request: ModelRequest, chance: random.Random, index: int) -> Call | None:
        """A call that asks another and waits; None if it would be too deep."""
        depth = _depth_of(request)
        if depth >= DEEPEST:
            return None
        talk = self._talk(request, chance, f"depth={depth + 1} {request.step_id}/{index}")
        return next(call for call in talk if call[0] == "send_mail_with_switch")

    def _talk(self, request: ModelRequest, chance: random.Random, what: str) -> list[Call]:
        """Calls that reach others, each of which says in `what` how deep it is."""
        other = chance.choice([name for name in AGENTS if name != request.agent_id])
        anyone = chance.choice((other, other, other, other, "user", request.agent_id))
        timeout = {"timeout_seconds": chance.choice((None, 0.5, 3.0, 20.0))}
        priority = {"priority": chance.choice(("low", "normal", "high"))}
        sleep = {"duration_seconds": chance.random() * 20} if chance.random() < 0.7 else {}
        switch: Call = (
            "send_mail_with_switch",
            {"to_agent": anyone, "subject": "q", "body": what, **timeout, **priority},
        )
        return [
            ("send_mail", {"to_agent": anyone, "subject": "s", "body": what, **priority}),
            switch,
            switch,
            switch,
            ("delegate_task", {"to_agent": anyone, "task": what, **timeout, **priority}),
            ("delegate_task", {"to_agent": other, "task": what, **timeout}),
            ("sleep", {**sleep, "wake_events": chance.sample((*EVENTS, "mail_received"), 2)}),
            ("wake_agent", {"agent": other, "reason": what}),
            ("broadcast_event", {"event": chance.choice(EVENTS), "data": what}),
            ("request_help", {"problem": what, "to_agent": chance.choice((None, other))}),
        ]

    def tools(self) -> list[Any]:
        def touched(arguments: Mapping[str, Any]) -> list[str]:
            return arguments["touches"]  # type: ignore[no-any-return]

        @tool(touches=touched, needs_approval=lambda _: self.is_strict)
        async def effect(seconds: float, touches: list[str], context: ToolContext) -> str:
            """Something that must not happen twice."""
            self.effects[context.step_id] += 1
            await self._touch(touches, seconds)
            return "ok"

        @tool(touches=touched, idempotent=True)
        async def repeatable(seconds: float, touches: list[str], context: ToolContext) -> str:
            """Something that may happen twice."""
            self.repeatable_effects[context.step_id] += 1
            await self._touch(touches, seconds)
            return "ok"

        @tool(touches=touched, needs_approval=True)
        async def costly(seconds: float, touches: list[str], context: ToolContext) -> str:
            """Something that must not happen twice, nor without a person's approval."""
            self.effects[context.step_id] += 1
            await self._touch(touches, seconds)
            return "ok"

        return [effect, repeatable, costly]

    async def _touch(self, touches: list[str], seconds: float) -> None:
        """Touch things for a while, and note it if somebody else touches them at the same time."""
        touched = self.touched()
        for access, name in map(str.split, touches):
            others = touched[name] if access == "write" else [each for each in touched[name] if each == "write"]
            self.collisions += [name] * bool(others)
            touched[name].append(access)
        try:
            await asyncio.sleep(seconds)
        finally:
            for access, name in map(str.split, touches):
                touched[name].remove(access)

    def touched(self) -> dict[str, list[str]]:
        """What is touched now, by those who take turns, and how."""
        return self._touched

    @contextmanager
    def faulty_loops(self) -> Iterator[None]:
        """Let loops break now and then: before a step, after an answer, after the effect of a tool."""
        doing = AILoop._doing
        frequency = self.chance_for("faults").choice((0.01, 0.01, 0.01, 0.08))
        record_answer, record_result = RunningTask.record_answer, RunningTask.record_outside_result

        def maybe_break(where: str, running: RunningTask) -> None:
            key = f"{where}/{running.journal.task.id}/{len(running.journal.steps)}/{running.journal.task.restarts}"
            if self.chance_for(key).random() < frequency:
                raise PlannedFaultError(key)

        def doing_or_break(loop: AILoop, action: Any) -> Coroutine[Any, Any, None]:
            maybe_break("next", loop.running)
            return doing(loop, action)

        def record_answer_or_break(running: RunningTask, decision: Any, step: StepRecord) -> None:
            maybe_break("answer", running)
            record_answer(running, decision, step)

        def record_result_or_break(running: RunningTask, decision: Any, step: StepRecord, result: Any) -> None:
            maybe_break(f"result/{step.number}", running)
            record_result(running, decision, step, result)

        with (
            patch.object(AILoop, "_doing", doing_or_break),
            patch.object(RunningTask, "record_answer", record_answer_or_break),
            patch.object(RunningTask, "record_outside_result", record_result_or_break),
        ):
            yield


class FaultListener(logging.Handler):
    """Collects what is logged as an error: there must be none but what was planned."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults
        self.is_deaf = False  # what a dead process says counts for nothing

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if not self.is_deaf and not is_planned(error):
            self._faults.append(f"{record.getMessage()}: {error!r}" if error else record.getMessage())


def is_planned(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(is_planned(each) for each in error.exceptions)
    return isinstance(error, PlannedFaultError)


def _some_touches(chance: random.Random) -> list[str]:
    names = chance.sample(THINGS, chance.choice((0, 1, 1, 2)))
    return [f"{chance.choice(('read', 'write'))} {name}" for name in names]


def _mail_ids(text: str) -> list[str]:
    return [line[9:] for line in text.splitlines() if line.startswith("Mail id: ")]


def _depth_of(request: ModelRequest) -> int:
    return max((int(found) for found in re.findall(r"depth=(\d+)", prompt_of(request))), default=0)
