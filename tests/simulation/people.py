"""The people of random lives: what they ask for at random times, and how they let all work end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from ai_whisperer import AgentState, AsyncAgentSessionManager
from ai_whisperer.core.blame import LONGEST_REST_SECONDS
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import AnswerError, LockNotHeldError, QueueFullError, StateError
from ai_whisperer.simulation.loop import VirtualClock
from ai_whisperer.tools.registry import COORDINATION_TOOLS
from tests.simulation.promises import TREE_CANCELLED, check_now
from tests.simulation.world import AGENTS, ALWAYS_ASKS, EVENTS, LOCKS, STEERING, World

LOOPS = 2
SUBSCRIBES: dict[str, tuple[str, ...]] = {"ann": ("data_ready",), "ben": ("*",), "cid": ("help_requested",), "dot": ()}
MOST_PLACES = 5
"""So many loops work at the same time at most in a session that was just opened."""
REFUSALS = (StateError, QueueFullError, LockNotHeldError, TimeoutError)
"""What does not fit is refused, and now and then somebody gives up waiting: that is as it should be."""


class People:
    """Ask a session for this and that; one seed decides what and when."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.world = World(seed)
        self._random = random.Random(seed)
        self._clock = VirtualClock()
        self._clock_is_set = seed % 3 == 1
        self._settings = random.Random(f"clock {seed}")
        self._sent = 0
        self._places: dict[AsyncAgentSessionManager, int] = {}

    def definition(self, name: str) -> dict[str, Any]:
        return _definition(name, random.Random(self.seed))

    async def _meddle(self, manager: AsyncAgentSessionManager) -> None:
        for _ in range(25):
            await asyncio.sleep(self._random.random() * 2)
            await self._check_now(manager)
            patience = self._random.random() * 0.1 if self._random.random() < 0.1 else None
            with suppress(*REFUSALS):
                async with asyncio.timeout(patience):
                    await self._choose()(manager, self._random.choice(AGENTS))

    async def _check_now(self, manager: AsyncAgentSessionManager) -> None:
        """When there are fewer places than before, those who work go on, and none may begin in their place."""
        most = manager._session.stated.whole.max_concurrent_loops
        places = max(most, self._places.get(manager, MOST_PLACES))
        await check_now(manager, loops=LOOPS, places=places)
        self._places[manager] = max(most, manager._session.slots.used)

    def _choose(self) -> Callable[[AsyncAgentSessionManager, str], Awaitable[object]]:
        deeds: list[tuple[int, Callable[[AsyncAgentSessionManager, str], Awaitable[object]]]] = [
            (5, self._send_task),
            (4, self._send_mail),
            (2, AsyncAgentSessionManager.pause_agent),
            (1, AsyncAgentSessionManager.interrupt_agent),
            (4, AsyncAgentSessionManager.resume_agent),
            (1, AsyncAgentSessionManager.stop_agent),
            (3, AsyncAgentSessionManager.start_agent),
            (1, self._put_to_sleep),
            (2, AsyncAgentSessionManager.wake_agent),
            (1, self._broadcast),
            (2, self._answer_mail),
            (2, self._cancel_something),
            (1, self._cancel_tree),
            (2, self._retry_something),
            (6, self._decide_something),
            (6, self._answer_something),
            (4, self._steer),
            (2, self._change_limits),
            (1, self._break_a_lock),
            (1, self._change_mind),
            (3, self._send_twice),
            (2, self._retry_twice),
            (2, self._wait_for_something),
        ]
        return self._random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]

    async def _send_task(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        tokens = self._random.choice((None, None, None, 300, 1_500, 4_000))
        task = await manager.send_task(
            agent,
            "work",
            task_id=f"task{self._sent}",
            thread_id=self._random.choice((None, None, f"{agent}-thread")),
            priority=self._random.choice(("low", "normal", "high", "urgent")),
            timeout_seconds=self._random.choice((None, None, None, 3.0, 20.0)),
            budget=None if tokens is None else Budget(max_tokens=tokens),
        )
        self.world.accepted_tasks.add(task.id)

    async def _steer(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        """Say something to a task that is at work, or is not by now."""
        self._sent += 1
        loops = manager._session.roster.agents[agent].work.loops.values()
        threads = sorted(loop.task.thread_id for loop in loops if not loop.task.answers_a_switch)
        task = await manager.send_task(
            agent,
            f"{STEERING}task{self._sent}",
            task_id=f"task{self._sent}",
            thread_id=self._random.choice((*threads, f"{agent}-thread")),
            priority=self._random.choice(("low", "normal", "urgent")),
            timeout_seconds=self._random.choice((None, None, None, 3.0)),
            deliver="next_step",
        )
        self.world.accepted_tasks.add(task.id)
        self.world.steered.add(task.id)

    async def _send_mail(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        priority = self._random.choice(("low", "normal", "normal", "high", "urgent"))
        thread_id = self._random.choice((None, f"{agent}-thread"))
        mail = await manager.send_mail(
            agent, "s", "b", mail_id=f"mail{self._sent}", priority=priority, thread_id=thread_id
        )
        self.world.accepted_mails.add(mail.id)

    async def _send_twice(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        """Somebody who does not know whether it was heard sends the same again, soon or later."""
        self._sent += 1
        number, is_task = self._sent, self._random.random() < 0.5

        async def send(after_seconds: float) -> None:
            await asyncio.sleep(after_seconds)
            if is_task:
                task = await manager.send_task(agent, "work", task_id=f"task{number}")
                self.world.accepted_tasks.add(task.id)
            else:
                mail = await manager.send_mail(agent, "s", "b", mail_id=f"mail{number}")
                self.world.accepted_mails.add(mail.id)

        await _all_of(*(send(self._random.random() * 0.1) for _ in range(2)))

    async def _retry_twice(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        """Two people have the same thought."""
        ended = [task for task in await manager.list_tasks(agent) if task.state in ("failed", "cancelled", "dead")]
        if ended:
            task_id = self._random.choice(ended).id
            await _all_of(manager.retry_task(task_id), manager.retry_task(task_id))

    async def _wait_for_something(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        """Whoever waits for the end of a task is told of it."""
        tasks = await manager.list_tasks(agent, limit=5)
        if tasks:
            task_id = self._random.choice(tasks).id
            waiting = asyncio.ensure_future(manager.wait_task(task_id))
            try:
                await asyncio.wait([waiting], timeout=5)
                known = await manager.get_task(task_id)
                if known.state.ended and not known.state.is_passed_on:
                    await asyncio.wait([waiting], timeout=1)
                    assert waiting.done(), f"nobody was told that {task_id} has ended"
            finally:
                waiting.cancel()

    async def _put_to_sleep(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        seconds, events = 0.1 + self._random.random() * 30, self._random.sample(EVENTS, 1)
        if self._clock_is_set and self._settings.random() < 0.5:
            await manager.sleep_agent(agent, until=self._clock.now() + seconds, wake_events=events)
        else:
            await manager.sleep_agent(agent, duration_seconds=seconds, wake_events=events)

    async def _broadcast(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        self._sent += 1
        event = await manager.broadcast_event(self._random.choice(EVENTS), f"{agent} {self._sent}")
        self.world.accepted_events.add(event.data)

    async def _answer_mail(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        mails = [mail for mail in await manager.mailbox() if mail.sender == agent]
        if mails:
            mail = self._random.choice(mails)
            reply = await manager.reply_mail(mail.id, "b depth=2")
            self.world.accepted_mails.add(reply.id)

    async def _cancel_something(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        tasks = await manager.list_tasks(agent, limit=5)
        if tasks:
            await manager.cancel_task(self._random.choice(tasks).id)

    async def _cancel_tree(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        tasks = await manager.list_tasks(agent, limit=5)
        if tasks:
            await manager.cancel_tree(self._random.choice(tasks).id, reason=TREE_CANCELLED)

    async def _retry_something(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        ended = [task for task in await manager.list_tasks(agent) if task.state in ("failed", "cancelled", "dead")]
        if ended:
            await manager.retry_task(self._random.choice(ended).id)

    async def _decide_something(self, manager: AsyncAgentSessionManager, _: str) -> None:
        for approval in await manager.list_approvals():
            if self._random.random() < 0.7:
                await self._random.choice((manager.approve, manager.approve, manager.refuse))(approval.id)

    async def _answer_something(self, manager: AsyncAgentSessionManager, _: str) -> None:
        """Of each question that waits, answer it, refuse it, leave it, or try an answer that does not fit."""
        for question in await manager.list_questions():
            chance = self._random.random()
            if chance < 0.2:
                with suppress(AnswerError):
                    await manager.answer_question(question.id, {"number": "many"})
                    raise AssertionError("an answer was taken that does not fit")
            elif chance < 0.4:
                await manager.refuse_question(question.id)
            elif chance < 0.8:
                self._sent += 1
                number = self._sent
                await manager.answer_question(question.id, {"number": number})
                self.world.accepted_answers[question.id] = number

    async def _change_limits(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        name, values = self._random.choice(
            (
                ("max_concurrent_loops", (1, 2, 3, 4, 5)),
                ("max_steps_per_task", (2, 4, 100, None)),
                ("max_same_calls", (1, 2, None)),
                ("max_queue_length", (1, 3, 1000)),
            )
        )
        of_session = name == "max_concurrent_loops"
        await self._check_now(manager)
        await manager.set_limits({name: self._random.choice(values)}, agent_id=None if of_session else agent)

    async def _break_a_lock(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        await manager.break_lock(self._random.choice(LOCKS), f"{agent} may go on")

    async def _change_mind(self, *_: object) -> None:
        self.world.is_strict = not self.world.is_strict

    async def _let_all_end(self, manager: AsyncAgentSessionManager) -> None:
        """People see to it that all work ends, and wait until it has, and until it is told."""
        # Six times as long as the slowest of the first runs took, if no task rests.
        async with asyncio.timeout(LONGEST_REST_SECONDS + 2_000):
            while busy := [name for name in AGENTS if is_busy(manager, name)]:
                for name in busy:
                    await set_going(manager, name)
                with suppress(StateError):  # a task may end while people decide about another
                    await self._decide_something(manager, busy[0])
                    await self._answer_something(manager, busy[0])
                await asyncio.sleep(3)
        await manager.flushed()


async def _all_of(*deeds: Coroutine[Any, Any, object]) -> None:
    """Do all of it side by side; what is refused is raised when all have ended."""
    outcomes = await asyncio.gather(*deeds, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _definition(name: str, chance: random.Random) -> dict[str, Any]:
    return {
        "limits": {
            "max_concurrent_tasks": LOOPS,
            "max_queue_length": chance.choice((3, 1000, 1000)),
            "max_continuations": 2,
            "max_mail_bytes": 400,
            "max_switch_depth": 3,
            "switch_timeout_seconds": 30.0,
        },
        "supervision": {"max_restarts": 2},
        "tools": [*COORDINATION_TOOLS, "ask_user", "effect", "repeatable", ALWAYS_ASKS],
        "subscribes": SUBSCRIBES[name],
    }


async def set_going(manager: AsyncAgentSessionManager, name: str) -> None:
    """People leave; what is paused, stopped or asleep for good goes on."""
    for attempt in (manager.resume_agent, manager.start_agent):
        with suppress(StateError):
            await attempt(name)
    status = manager.get_agent_status(name)
    if status.state is AgentState.SLEEPING and (status.sleeping_until is None or status.sleeping_by_wall_clock):
        await manager.wake_agent(name)


def is_busy(manager: AsyncAgentSessionManager, name: str) -> bool:
    status = manager.get_agent_status(name)
    return status.state is not AgentState.IDLE or status.queue_size > 0
