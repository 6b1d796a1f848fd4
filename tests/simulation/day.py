"""A day in the life of fifty agents: each has an errand of every hour, and from outside come tasks, mail and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from ai_whisperer import AgentState, AsyncAgentSessionManager, Budget, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import ModelRefusedError, ModelServerError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, prompt_of, round_of

HOUR_SECONDS = 3600.0

Errand = Callable[[ModelRequest, int], Answer | str]

_numbers = count()


@tool
async def nap(seconds: float) -> str:
    """Let time pass."""
    await asyncio.sleep(seconds)
    return "rested"


def partner_of(agent_id: str, *, distance: int = 1) -> str:
    number = (int(agent_id.removeprefix("worker-")) + distance) % len(AGENTS)
    return AGENTS[number]


def _rounds(*each: Callable[[ModelRequest], Answer | str]) -> Errand:
    return lambda request, number: each[number](request) if number < len(each) else "done"


def _ask(request: ModelRequest) -> Answer:
    return call("send_mail_with_switch", to_agent=partner_of(request.agent_id), subject="A question", body="?")


def _ask_in_vain(request: ModelRequest) -> Answer:
    return call("send_mail_with_switch", to_agent=PAUSED, subject="Are you there?", body="?", timeout_seconds=30)


def _mail(request: ModelRequest) -> Answer:
    mail = {"subject": "News", "body": "Nothing new."}
    to = [partner_of(request.agent_id, distance=distance) for distance in (1, 7)]
    return calls(*(("send_mail", {"to_agent": each, **mail}) for each in (*to, "user")))


def _delegate(what: str) -> Callable[[ModelRequest], Answer]:
    return lambda request: call("delegate_task", to_agent=partner_of(request.agent_id), task=what, timeout_seconds=600)


def _lock(name: str, **arguments: Any) -> Callable[[ModelRequest], Answer]:
    return lambda _: call("acquire_lock", name=name or f"file-{next(_numbers)}", **arguments)


def _nap(seconds: float) -> Callable[[ModelRequest], Answer]:
    return lambda _: call("nap", seconds=seconds)


def _refuse(request: ModelRequest) -> Answer:
    raise ModelRefusedError("No.")


def _stumble(request: ModelRequest) -> str:
    if request.attempt < 3:
        raise ModelServerError("Later.")
    return "done"


ERRANDS: dict[str, Errand] = {
    "mail": _rounds(_mail, lambda _: call("check_mail")),
    "ask": _rounds(_ask),
    "ask in vain": _rounds(_ask_in_vain),
    "delegate": _rounds(_delegate("Count the words.")),
    "lock something new": _rounds(_lock(""), lambda _: call("report_progress", percent=50), _nap(3)),
    "share": _rounds(_lock("press", wait_seconds=25), _nap(10), lambda _: call("release_lock", name="press")),
    "overstay": _rounds(_lock("desk", ttl_seconds=20, wait_seconds=200), _nap(30)),
    "sleep": _rounds(lambda _: call("sleep", duration_seconds=300)),
    "doze": _rounds(lambda _: call("sleep", wake_events=["dawn"], duration_seconds=20 * HOUR_SECONDS)),
    "shout": _rounds(lambda _: call("broadcast_event", event="news", data={"n": 1})),
    "go on": lambda _, number: "a part\n[CONTINUE]" if number == 0 else "the rest",
    "fail": _rounds(_refuse),
    "stumble": _rounds(_stumble),
    "crash": _rounds(),
    "nap": _rounds(_nap(500)),
    "delegate a nap": _rounds(_delegate("nap")),
}

AGENTS = [f"worker-{number:02}" for number in range(50)]
STOPPED, PAUSED, FAILING, CRASHING = AGENTS[26], *AGENTS[47:]
_SCHEDULED = [name for name in ERRANDS if name not in ("crash", "nap", "delegate a nap")]


def say(request: ModelRequest) -> Answer | str:
    """What any agent says: what its errand wants, or a word in a room, or thanks."""
    prompt = prompt_of(request)
    errand = ERRANDS.get(prompt.rsplit("\n\n", maxsplit=1)[-1])
    if errand is not None:
        return errand(request, round_of(request))
    if "room" in prompt.lower() and request.agent_id == AGENTS[1]:
        return f"What do you say, @{AGENTS[2]}?"
    return "[PASS]" if "[PASS]" in prompt and request.agent_id == AGENTS[3] else "Thank you."


class Day:
    """The day as it is seen from outside."""

    def __init__(self, manager: AsyncAgentSessionManager) -> None:
        self._manager = manager
        self._hours = 0

    async def prepare(self) -> None:
        for number, agent_id in enumerate(AGENTS):
            errand = "crash" if agent_id == CRASHING else _SCHEDULED[number % len(_SCHEDULED)]
            config = {
                "schedule": [{"cron": f"{1 + number % len(_SCHEDULED)} * * * *", "prompt": errand}],
                "limits": {"max_concurrent_tasks": 1 + number % 2},
                "subscribes": ["news"] if number % 10 == 0 else [],
            }
            await self._manager.create_agent(agent_id, config)
        self._group = await self._manager.create_room(AGENTS[:4], title="Plans")
        self._chat = await self._manager.open_chat(AGENTS[5])

    async def hour(self) -> None:
        """One hour; at its end, everything is at rest."""
        manager = self._manager
        begun = asyncio.get_running_loop().time()
        await manager.pause_agent(PAUSED)
        await asyncio.sleep(10 * 60)
        await self._talk()
        await self._give_tasks()
        await self._trouble()
        await manager.resume_agent(PAUSED)
        await asyncio.sleep(60)
        await manager.broadcast_event("dawn", {"hour": self._hours}, event_id=f"dawn-{self._hours}")
        self._hours += 1
        await asyncio.sleep(begun + HOUR_SECONDS - asyncio.get_running_loop().time())
        busy = {
            status.agent_id: status.state for status in manager.list_agents() if status.state is not AgentState.IDLE
        }
        assert not busy

    async def _talk(self) -> None:
        manager = self._manager
        await manager.post_message(self._group, "What does the room say?")
        await manager.post_message(self._group, f"And you, @{AGENTS[1]}?", message_id=f"m-{self._hours}")
        await manager.post_message(self._chat, "Hello!")
        for _ in range(2):
            await manager.send_mail(AGENTS[8], "Hello", "How are you?", mail_id=f"hello-{self._hours}")
        await manager.send_mail(AGENTS[9], "Quick", "Now!", priority="urgent")
        for mail in await manager.mailbox(limit=5):
            with suppress(StateError):
                await manager.mark_mail(mail.id, "read")

    async def _give_tasks(self) -> None:
        manager = self._manager
        late = await manager.send_task(AGENTS[10], "nap", timeout_seconds=20)
        early = [await manager.send_task(agent_id, "mail", timeout_seconds=100_000) for agent_id in AGENTS[11:16]]
        costly = await manager.send_task(AGENTS[16], "delegate", budget=Budget(max_tokens=20, max_cost_usd=5.0))
        one_thread = [await manager.send_task(AGENTS[17], "mail", thread_id="always the same") for _ in range(3)]
        for _ in range(2):
            await manager.send_task(AGENTS[18], "ask", task_id=f"task-{self._hours}")
        for task in (late, *early, costly, *one_thread):
            await manager.wait_task(task)
        assert (await manager.get_task(late.id)).state is TaskState.FAILED

    async def _trouble(self) -> None:
        manager = self._manager
        napping = await manager.send_task(AGENTS[20], "nap")
        impatient = asyncio.ensure_future(manager.wait_task(napping))
        tree = await manager.send_task(AGENTS[23], "delegate a nap")
        await asyncio.sleep(5)
        impatient.cancel()
        await manager.cancel_task(napping)
        assert await manager.cancel_tree(tree)
        await manager.send_task(STOPPED, "nap")
        waiting = await manager.send_task(STOPPED, "mail", timeout_seconds=50)
        await manager.send_task(AGENTS[22], "nap", timeout_seconds=30)
        await asyncio.sleep(5)
        await manager.stop_agent(STOPPED)
        await manager.wait_task(waiting)
        await manager.start_agent(STOPPED)
        for _ in range(5):
            failed = await manager.send_task(FAILING, "fail")
            await manager.wait_task(failed)
        await asyncio.sleep(5)
        assert manager.get_agent_status(FAILING).state is AgentState.STOPPED
        await manager.start_agent(FAILING)
        await manager.wait_task(await manager.retry_task(failed))
        schedule = await manager.create_schedule(interval_seconds=60, event="news")
        await asyncio.sleep(200)
        await manager.delete_schedule(schedule)
