"""Random lives of a session: random work, random orders, random deaths; then the promises are checked.

Everything comes from one seed: the order of callbacks, the speed of the disk, the ids, what people and models do.
"""

from __future__ import annotations

import asyncio
import logging
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from ai_whisperer import AgentState, AsyncAgentSessionManager, WhispererError, tool
from ai_whisperer.errors import ModelRefusedError, ModelServerError, StateError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.records import Answer, StepState, ToolTurn, UserTurn
from ai_whisperer.testing.disk import SimulatedDisk
from ai_whisperer.testing.simulation import VirtualClock, simulate
from ai_whisperer.tools.function import ToolContext
from tests.simulation.stage import calls, round_of

AGENTS = ("ann", "ben", "cid", "dot")
LIFE_SECONDS = 60.0
LOOPS = 2


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

    def chance_for(self, key: str) -> random.Random:
        """The same for the same question, so that a repeated request is answered alike."""
        return random.Random(zlib.crc32(f"{self.seed}/{key}".encode()))

    def answer(self, request: ModelRequest) -> Answer | str:
        self.asked[request.step_id] += 1
        if request.step_id in self.settled:
            self.asked_again.append(request.step_id)
        for turn in request.turns:
            text = turn.text if isinstance(turn, UserTurn) else turn.content if isinstance(turn, ToolTurn) else ""
            self.shown_mail.update(line[9:] for line in text.splitlines() if line.startswith("Mail id: "))
        chance = self.chance_for(f"{request.step_id}/{request.attempt}")
        if chance.random() < 0.1:
            raise ModelServerError
        if chance.random() < 0.02:
            raise ModelRefusedError
        if round_of(request) < 3 and chance.random() < 0.6:
            return calls(*(self._some_call(request, chance) for _ in range(chance.choice((1, 1, 2, 3)))))
        return "more\n[CONTINUE]" if chance.random() < 0.1 else "done"

    def _some_call(self, request: ModelRequest, chance: random.Random) -> tuple[str, dict[str, Any]]:
        others = [name for name in AGENTS if name != request.agent_id]
        mail_ids = [line[9:] for turn in request.turns if isinstance(turn, UserTurn) for line in turn.text.splitlines()
                    if line.startswith("Mail id: ")]  # fmt: skip
        options: list[tuple[str, dict[str, Any]]] = [
            ("effect", {"seconds": chance.random() * 5}),
            ("repeatable", {"seconds": chance.random() * 5}),
            ("check_mail", {}),
            ("report_progress", {"percent": 50}),
            ("nonsense", {}),
        ]
        if chance.random() < 0.3:
            options.append(("send_mail", {"to_agent": chance.choice(others), "subject": "s", "body": "b"}))
        if mail_ids:
            options.append(("reply_mail", {"mail_id": mail_ids[-1], "body": "b"}))
        return chance.choice(options)

    def tools(self) -> list[Any]:
        @tool
        async def effect(seconds: float, context: ToolContext) -> str:
            """Something that must not happen twice."""
            self.effects[context.step_id] += 1
            await asyncio.sleep(seconds)
            return "ok"

        @tool(idempotent=True)
        async def repeatable(seconds: float, context: ToolContext) -> str:
            """Something that may happen twice."""
            self.repeatable_effects[context.step_id] += 1
            await asyncio.sleep(seconds)
            return "ok"

        return [effect, repeatable]


class _Listener(logging.Handler):
    """Collects what the runtime logs as an error: there must be none."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(
            f"{record.getMessage()}: {record.exc_info[1]!r}" if record.exc_info else record.getMessage()
        )


class Chaos:
    """One run of several lives on one disk."""

    def __init__(self, seed: int, *, lives: int = 3) -> None:
        self.seed = seed
        self.world = World(seed)
        self.disk = SimulatedDisk(seed, slowest_commit_seconds=0.05)
        self._random = random.Random(seed)
        self._lives = lives
        self._elapsed = 0.0
        self._sent = 0
        self.log: list[tuple[int, str, str]] = []
        self.faults: list[str] = []

    def run(self) -> None:
        """Live, die, live again; in the last life let all work end and check what was promised."""
        handler = _Listener(self.faults)
        logging.getLogger("ai_whisperer").addHandler(handler)
        try:
            for life in range(self._lives):
                simulate(self._live(), seed=self.seed * 100 + life)
            simulate(self._finish(), seed=self.seed * 100 + 99)
        finally:
            logging.getLogger("ai_whisperer").removeHandler(handler)
            self.disk.crash()
            self.disk.close()

    async def _open(self) -> AsyncAgentSessionManager:
        manager = AsyncAgentSessionManager(
            store=self.disk.open(),
            tools=self.world.tools(),
            model_factory=lambda _: FunctionModel(self.world.answer, latency_seconds=1.0),
            clock=VirtualClock().later(self._elapsed),
            random=random.Random(self._random.random()),
        )
        await manager.open()
        self.world.settled = self._settled_steps(manager)
        for name in AGENTS:
            if name not in manager.active_sessions:
                await manager.create_agent(name, {"limits": {"max_concurrent_tasks": LOOPS, "max_continuations": 2}})
        return manager

    def _settled_steps(self, manager: AsyncAgentSessionManager) -> set[str]:
        return {
            step.id
            for name in manager.active_sessions
            for task in manager.list_tasks(name, limit=10_000)
            for step in manager.list_steps(task.id)
            if step.state in (StepState.DONE, StepState.UNKNOWN)
        }

    async def _live(self) -> None:
        manager = await self._open()
        people = [asyncio.ensure_future(self._meddle(manager)) for _ in range(3)]
        lifetime = self._random.random() * LIFE_SECONDS
        await asyncio.wait(people, timeout=lifetime)
        gently = self._random.random() < 0.2
        for person in people:
            person.cancel()
        await asyncio.wait(people)
        for person in people:
            if not person.cancelled():
                person.result()
        if gently:
            await manager.close()
        assert not self.faults, f"a loop broke: {self.faults}"
        self.disk.crash()
        self._elapsed += asyncio.get_running_loop().time() + self._random.choice((0.0, 100.0))

    async def _meddle(self, manager: AsyncAgentSessionManager) -> None:
        for _ in range(25):
            await asyncio.sleep(self._random.random() * 2)
            for name in AGENTS:
                running = manager.get_agent_status(name).running_tasks
                assert len(running) <= LOOPS, "an agent runs more loops than it may"
            try:
                await self._choose()(manager, self._random.choice(AGENTS))
            except StateError:
                continue  # a call that does not fit the state is refused: that is as it should be

    def _choose(self) -> Callable[[AsyncAgentSessionManager, str], Awaitable[object]]:
        deeds: list[tuple[int, Callable[[AsyncAgentSessionManager, str], Awaitable[object]]]] = [
            (4, self._send_task),
            (4, self._send_mail),
            (2, AsyncAgentSessionManager.pause_agent),
            (1, AsyncAgentSessionManager.interrupt_agent),
            (4, AsyncAgentSessionManager.resume_agent),
            (1, AsyncAgentSessionManager.stop_agent),
            (3, AsyncAgentSessionManager.start_agent),
            (1, self._put_to_sleep),
            (2, AsyncAgentSessionManager.wake_agent),
            (2, self._cancel_something),
            (2, self._retry_something),
        ]
        return self._random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]

    async def _send_task(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        task = await manager.send_task(
            agent,
            "work",
            task_id=f"task{self._sent}",
            thread_id=self._random.choice((None, None, f"{agent}-thread")),
            priority=self._random.choice(("low", "normal", "high", "urgent")),
        )
        self.world.accepted_tasks.add(task.id)

    async def _send_mail(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        priority = self._random.choice(("low", "normal", "normal", "high", "urgent"))
        thread_id = self._random.choice((None, f"{agent}-thread"))
        mail = await manager.send_mail(
            agent, "s", "b", mail_id=f"mail{self._sent}", priority=priority, thread_id=thread_id
        )
        self.world.accepted_mails.add(mail.id)

    async def _put_to_sleep(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        await manager.sleep_agent(agent, duration_seconds=0.1 + self._random.random() * 30)

    async def _cancel_something(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        tasks = manager.list_tasks(agent, limit=5)
        if tasks:
            await manager.cancel_task(self._random.choice(tasks).id)

    async def _retry_something(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        ended = [task for task in manager.list_tasks(agent) if task.state in ("failed", "cancelled", "dead")]
        if ended:
            await manager.retry_task(self._random.choice(ended).id)

    async def _finish(self) -> None:
        manager = await self._open()
        await asyncio.gather(self._meddle(manager), self._meddle(manager))
        for name in AGENTS:
            for attempt in (manager.resume_agent, manager.start_agent):
                try:
                    await attempt(name)
                except StateError:
                    continue
        async with asyncio.timeout(100_000):
            while any(_busy(manager, name) for name in AGENTS):  # noqa: ASYNC110 - virtual time: nothing is polled
                await asyncio.sleep(1)
        await manager.flushed()
        assert not self.faults, f"a loop broke: {self.faults}"
        check(manager, self.world)
        self.log = [(note.seq, note.name, note.cause) for note in manager.notifications(limit=100_000)]
        await manager.close()


def _busy(manager: AsyncAgentSessionManager, name: str) -> bool:
    status = manager.get_agent_status(name)
    return status.state is not AgentState.IDLE or status.queue_size > 0


def check(manager: AsyncAgentSessionManager, world: World) -> None:
    """The promises, seen from outside. Each failure says which one was broken."""
    tasks = {task.id: task for name in AGENTS for task in manager.list_tasks(name, limit=100_000)}
    mails = {mail.id: mail for name in (*AGENTS, "user") for mail in manager.mailbox(name, limit=100_000)}
    steps = {task_id: manager.list_steps(task_id) for task_id in tasks}

    assert world.accepted_tasks <= set(tasks), "an accepted task was lost"
    assert world.accepted_mails <= set(mails), "an accepted mail was lost"
    assert all(task.state.ended for task in tasks.values()), "a task never ended"
    assert not [task.error for task in tasks.values() if task.error and task.error.code == "internal"], "a loop broke"
    assert not world.asked_again, "a finished model request was repeated"
    assert all(count == 1 for count in world.effects.values()), "an outside effect happened twice"

    for task_id, journal in steps.items():
        assert [step.number for step in journal] == list(range(1, len(journal) + 1)), "a journal has a gap"
        assert all(step.state is not StepState.STARTED for step in journal), f"{task_id} has a step without an end"
        for step in journal:
            happened = world.effects[step.id] + world.repeatable_effects[step.id]
            if step.call is not None and step.state is StepState.DONE and step.call.name in ("effect", "repeatable"):
                assert happened, "a tool result was recorded for a call that did not happen"

    notes = manager.notifications(limit=1_000_000)
    handled = Counter(task.mail_id for task in tasks.values() if task.mail_id and task.state != "cancelled")
    for mail in mails.values():
        assert mail.recipient == "user" or mail.state not in ("queued", "delivered"), "a mail was never handled"
        owner = tasks.get(mail.task_id or "")
        if owner is not None and owner.mail_id == mail.id and owner.state in ("failed", "dead"):
            assert mail.state in ("dead", "replied"), "a mail whose task failed is no dead letter"
        assert handled[mail.id] <= 1, "a mail was handled twice"
        if mail.state in ("read", "replied") and mail.recipient != "user":
            assert mail.id in world.shown_mail, "a mail counts as read that no model was shown"

    _check_mail_order(notes, mails)
    sequences: dict[str, list[int]] = defaultdict(list)
    for mail in mails.values():
        sequences[mail.sender].append(mail.sequence)
    for sender, numbers in sequences.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"the sequence of {sender} has a gap"

    assert [note.seq for note in notes] == list(range(1, len(notes) + 1)), "the log has a gap"
    _check_threads(notes, tasks)


def _check_mail_order(notes: list[Any], mails: dict[str, Any]) -> None:
    """One sender's mails of one priority to one recipient never overtake: their first delivery is in order."""
    delivered: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    seen: set[str] = set()
    for note in notes:
        mail_id = note.params.get("mailId", "")
        if note.name == "mail.state_changed" and note.params["state"] == "delivered" and mail_id not in seen:
            seen.add(mail_id)
            mail = mails[mail_id]
            delivered[mail.sender, mail.recipient, mail.priority].append(mail.sequence)
    for key, sequence in delivered.items():
        assert sequence == sorted(sequence), f"mail from {key[0]} to {key[1]} was overtaken"


def _check_threads(notes: list[Any], tasks: dict[str, Any]) -> None:
    running: dict[tuple[str, str], str] = {}
    ends = {"async.task.completed", "async.task.continuation", "async.task.error", "async.task.cancelled"}
    for note in notes:
        task = tasks.get(note.params.get("taskId", ""))
        if task is None:
            continue
        key = (task.agent_id, task.thread_id)
        if note.name == "async.task.started":
            assert running.get(key, task.id) == task.id, "two tasks of one thread ran at the same time"
            running[key] = task.id
        elif note.name in ends and running.get(key) == task.id:
            del running[key]


def failure_of(seed: int) -> str | None:
    """What a run with this seed broke, if anything."""
    try:
        Chaos(seed).run()
    except (AssertionError, WhispererError, TimeoutError, ExceptionGroup, LookupError, ValueError) as failure:
        return f"{type(failure).__name__}: {failure}".splitlines()[0]
    return None
