"""Lifecycle, queue and mailbox against a small model of them, over restarts, in sequences that Hypothesis invents."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, Priority
from ai_whisperer.core.queueing import WorkQueue
from ai_whisperer.errors import StateError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.agents import agent as agent_session
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import SimulationLoop, VirtualClock
from ai_whisperer.store.sqlite import SqliteStore
from tests.planted import Caught
from tests.simulation.stage import prompt_of

_T = TypeVar("_T")

AGENTS = ("ann", "ben")
SUBSCRIBES = {"ann": (), "ben": ("rain",)}
ALLOWED = {
    "created": {"start", "stop"},
    "idle": {"start", "pause", "sleep", "stop"},
    "paused": {"resume", "stop"},
    "paused asleep": {"resume", "wake", "stop"},
    "sleeping": {"pause", "sleep", "wake", "stop"},
    "stopped": {"start", "stop"},
}
AFTER = {
    "start": "idle",
    "stop": "stopped",
    "resume": "idle",
    "wake": "idle",
    "sleep": "sleeping",
}


class Imagined:
    """What an agent ought to be: a state, what waits, and what was handled, in order.

    What waits is a tuple of rank, arrival and text, which begins with `t` for a task, `m` for a mail, `e` for an event.
    """

    def __init__(self) -> None:
        self.state = "created"
        self.waiting: list[tuple[int, int, str]] = []
        self.handled: list[str] = []
        self.listens_for = ""

    def receive(self, priority: Priority, arrival: int, text: str) -> None:
        self.waiting.append((priority.rank, arrival, text))
        self.work()

    def hear(self, event: str, arrival: int, *, subscribes: bool) -> None:
        """An event ends the sleep of one who listens for it, and is a task for one who has subscribed to it."""
        if self.state in ("sleeping", "paused asleep") and self.listens_for == event:
            self.act("wake")
        elif subscribes:
            self.receive(Priority.NORMAL, arrival, f"e{arrival}")

    def act(self, action: str, listens_for: str = "") -> None:
        if action == "pause":
            self.state = "paused asleep" if self.state == "sleeping" else "paused"
        elif action == "wake" and self.state == "paused asleep":
            self.state = "paused"
        elif action == "resume" and self.state == "paused asleep":
            self.state = "sleeping"
        else:
            self.state = AFTER[action]
        if action == "sleep":
            self.listens_for = listens_for
            if any(text[0] == "e" for *_, text in self.waiting):
                self.state = "idle"  # it does not sleep over an event
        self.work()

    def work(self) -> None:
        if self.state == "sleeping" and any(self._wakes(rank, text) for rank, _, text in self.waiting):
            self.state = "idle"
        if self.state == "idle":
            self.handled += [text for *_, text in sorted(self.waiting)]
            self.waiting.clear()

    def _wakes(self, rank: int, text: str) -> bool:
        return text[0] == "m" and (rank <= Priority.HIGH.rank or self.listens_for == "mail_received")


class SessionMachine(RuleBasedStateMachine):
    """A session on a simulated disk beside its model."""

    @initialize(seed=st.integers(0, 1000), unstarted=st.sampled_from(["", "", *AGENTS]))
    def open(self, seed: int, unstarted: str) -> None:
        self.loop = SimulationLoop(seed)
        self.disk = SimulatedDisk(seed)
        self.handled: dict[str, list[str]] = {name: [] for name in AGENTS}
        self.imagined = {name: Imagined() for name in AGENTS}
        self.arrival = 0
        self.store: SqliteStore
        self.manager: AsyncAgentSessionManager
        self.run(self.begin())
        for name in AGENTS:
            start = name != unstarted
            self.run(self.manager.create_agent(name, {"subscribes": SUBSCRIBES[name]}, auto_start=start))
            self.imagined[name].state = "idle" if start else "created"

    async def begin(self) -> None:
        self.store = self.disk.open()
        self.manager = AsyncAgentSessionManager(
            store=self.store,
            model_factory=lambda _: FunctionModel(self.say),
            clock=VirtualClock(),
            random=random.Random(self.arrival),
        )
        await self.manager.open()

    def say(self, request: ModelRequest) -> str:
        prompt = prompt_of(request)
        text = prompt.split("Subject: ")[1].splitlines()[0] if "Subject: " in prompt else prompt.split("Data: ")[-1]
        if not prompt.startswith("You were asleep"):
            self.handled[request.agent_id].append(text.strip('"'))
        return "done"

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        result = self.loop.run_until_complete(work)
        self.loop.run_until_complete(asyncio.sleep(10))
        return result

    @rule(agent=st.sampled_from(AGENTS), wake_event=st.sampled_from(["rain", "mail_received", "never"]))
    def sleep(self, agent: str, wake_event: str) -> None:
        self.act(agent, "sleep", wake_event)

    @rule(agent=st.sampled_from(AGENTS), action=st.sampled_from(["start", "pause", "resume", "stop", "wake"]))
    def act(self, agent: str, action: str, wake_event: str = "") -> None:
        calls: dict[str, Callable[[str], Coroutine[Any, Any, object]]] = {
            "start": self.manager.start_agent,
            "pause": self.manager.pause_agent,
            "resume": self.manager.resume_agent,
            "stop": self.manager.stop_agent,
            "wake": self.manager.wake_agent,
            "sleep": lambda name: self.manager.sleep_agent(name, wake_events=[wake_event]),
        }
        call = calls[action](agent)
        if action in ALLOWED[self.imagined[agent].state]:
            self.run(call)
            self.imagined[agent].act(action, wake_event)
        else:
            with pytest.raises(StateError):
                self.run(call)

    @rule(agent=st.sampled_from(AGENTS), priority=st.sampled_from(list(Priority)))
    def send_task(self, agent: str, priority: Priority) -> None:
        self.arrival += 1
        self.run(self.manager.send_task(agent, f"t{self.arrival}", priority=priority))
        self.imagined[agent].receive(priority, self.arrival, f"t{self.arrival}")

    @rule(agent=st.sampled_from(AGENTS), priority=st.sampled_from(list(Priority)))
    def send_mail(self, agent: str, priority: Priority) -> None:
        self.arrival += 1
        self.run(self.manager.send_mail(agent, f"m{self.arrival}", "x", priority=priority))
        self.imagined[agent].receive(priority, self.arrival, f"m{self.arrival}")

    @rule()
    def broadcast(self) -> None:
        self.arrival += 1
        self.run(self.manager.broadcast_event("rain", f"e{self.arrival}"))
        for name in AGENTS:
            self.imagined[name].hear("rain", self.arrival, subscribes="rain" in SUBSCRIBES[name])

    @rule()
    def crash(self) -> None:
        self.disk.crash()
        self.run(self.begin())

    @rule()
    def close_and_open(self) -> None:
        self.run(self.manager.close())
        self.run(self.store.close())
        self.run(self.begin())

    @invariant()
    def is_as_imagined(self) -> None:
        self.run(self.compare())

    async def compare(self) -> None:
        for name in AGENTS:
            status, imagined = self.manager.get_agent_status(name), self.imagined[name]
            state = {"created": "idle", "paused asleep": "paused"}.get(imagined.state, imagined.state)
            assert (status.state, status.started) == (state, imagined.state not in ("created", "stopped"))
            assert self.handled[name] == imagined.handled
            wake_ups = sum(
                task.kind == "wake_up" and not task.state.ended for task in await self.manager.list_tasks(name)
            )
            assert status.queue_size == len(imagined.waiting) + wake_ups
            unread = [mail for mail in await self.manager.mailbox(name) if mail.state == "queued"]
            assert len(unread) == status.unread_mail == sum(text[0] == "m" for *_, text in imagined.waiting)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.disk.crash()
            self.disk.close()
            self.loop.close()


TestSession = SessionMachine.TestCase
TestSession.settings = settings(
    max_examples=int(os.environ.get("WHISPERER_MACHINE_EXAMPLES", "30")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def give_every_item_the_same_priority(patch: pytest.MonkeyPatch) -> None:
    push = WorkQueue.push
    patch.setattr(WorkQueue, "push", lambda queue, item: push(queue, replace(item, priority=Priority.NORMAL)))


def sleep_through_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveAgent, "listens_for", lambda *_: False)


def fall_asleep_over_an_event(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(agent_session, "keeps_awake", lambda *_: False)


@pytest.mark.planted("model of the lifecycle", unit="example")
@pytest.mark.parametrize("plant", [give_every_item_the_same_priority, sleep_through_events, fall_asleep_over_an_event])
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    plant(monkeypatch)
    # The search ends with the first that shows the bug. It is random, so there must be room for bad luck.
    searching = settings(TestSession.settings, max_examples=1000, database=None, phases=[Phase.generate])
    examples = 0
    begin = SessionMachine.begin

    async def begin_and_count(self: SessionMachine) -> None:
        nonlocal examples
        examples += self.arrival == 0 and not hasattr(self, "store")
        await begin(self)

    monkeypatch.setattr(SessionMachine, "begin", begin_and_count)
    with pytest.raises(AssertionError) as failure:
        run_state_machine_as_test(SessionMachine, settings=searching)
    caught(str(failure.value).partition("\n")[0], after=examples)
