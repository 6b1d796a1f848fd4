"""How large a task tree may become: agents that keep each other busy come to an end, and nothing else does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.tasks import TaskKind
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.runtime.limits import trees
from tests.simulation.stage import Say, call, play, play_over_crash, prompt_of, results_of, round_of, until

MOST = 9


async def a_pair(manager: AsyncAgentSessionManager, **definition: Any) -> None:
    for name in ("a", "b"):
        await manager.create_agent(name, {"limits": {"max_tasks_per_tree": MOST}, **definition})


async def told(manager: AsyncAgentSessionManager) -> list[dict[str, Any]]:
    await manager.flushed()
    notes = [note.params for note in await manager.notifications(limit=100_000) if note.name == "limit.reached"]
    return [params for params in notes if params["limit"] == "max_tasks_per_tree"]


async def at_rest(manager: AsyncAgentSessionManager) -> None:
    await until(lambda: all(status.state == "idle" and not status.queue_size for status in manager.list_agents()))


def other(request: ModelRequest) -> str:
    return "b" if request.agent_id == "a" else "a"


WAYS: dict[str, Say] = {
    "delegating": lambda request: call("delegate_task", to_agent=other(request), task="and now you"),
    "mailing": lambda request: call("send_mail", to_agent=other(request), subject="ball", body="and now you"),
    "broadcasting": lambda _: call("broadcast_event", event="ball"),
}


@pytest.mark.parametrize("way", WAYS)
def test_agents_that_keep_each_other_busy_come_to_an_end(way: str) -> None:
    def say(request: ModelRequest) -> Answer | str:
        return "done" if round_of(request) else WAYS[way](request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager, subscribes=["ball"])
        task = await manager.send_task("a", "begin")
        await at_rest(manager)
        size = len(await manager.get_task_tree(task.id))
        first, *_ = await told(manager)
        assert (first["scope"], first["used"], first["max"], first["action"]) == ("tree", MOST, MOST, "refused")
        assert MOST <= size < 2 * MOST  # the result of each that was delegated still comes

    play(scenario, say)


def test_the_model_is_told_and_can_answer_with_what_is_there() -> None:
    results: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        if not round_of(request):
            return call("delegate_task", to_agent=other(request), task="and now you")
        results.append(results_of(request)[-1])
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager)
        await manager.send_task("a", "begin")
        await at_rest(manager)
        assert f"tasks and may come to {MOST} (max_tasks_per_tree)" in results[-1]

    play(scenario, say)


def test_each_task_of_a_person_begins_a_tree_of_its_own() -> None:
    def say(request: ModelRequest) -> Answer | str:
        begins = request.agent_id == "a" and not round_of(request)
        return call("delegate_task", to_agent="b", task="do it") if begins and prompt_of(request) == "begin" else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager)
        for _ in range(MOST):
            await manager.run_task("a", "begin")
        await at_rest(manager)
        assert await told(manager) == []

    play(scenario, say)


def test_the_size_is_known_after_a_crash() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return "done" if round_of(request) else call("delegate_task", to_agent=other(request), task="and now you")

    async def before(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager)
        await manager.pause_agent("b")
        await manager.run_task("a", "begin", task_id="root")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.resume_agent("b")
        await at_rest(manager)
        first, *_ = await told(manager)
        assert (first["used"], first["max"]) == (MOST, MOST)
        assert MOST <= len(await manager.get_task_tree("root")) < 2 * MOST

    play_over_crash(before, after, say, crash_after_seconds=50)


def test_the_size_is_known_when_the_first_task_is_retried_after_a_crash() -> None:
    told_no: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        match round_of(request):
            case 8 if not told_no:  # the tree has nine by now
                told_no.append("once")
                raise ModelRefusedError
            case 9:
                return "done"
        return call("delegate_task", to_agent="b", task="do it")

    async def before(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager)
        await manager.pause_agent("b")
        await manager.send_task("a", "begin", task_id="root")

        async def is_so() -> bool:
            return (await manager.get_task("root")).state.is_dead_letter

        await until(is_so)
        assert await told(manager) == []

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.retry_task("root")

        async def is_so() -> bool:
            return (await manager.get_task("root")).state.ended

        await until(is_so)
        assert len(await manager.get_task_tree("root")) == MOST
        assert len(await told(manager)) == 1

    play_over_crash(before, after, say, crash_after_seconds=50)


def test_the_size_is_counted_again_when_too_many_trees_grow_to_be_kept_in_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_MOST_SIZES", 1)

    def say(request: ModelRequest) -> Answer | str:
        number = round_of(request)
        begins = prompt_of(request) == "begin" and number < 2 * MOST
        return call("delegate_task", to_agent="c", task=f"part {number}") if begins else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await a_pair(manager)
        await manager.create_agent("c")
        await asyncio.sleep(1)  # what is sent now is newer than the session
        roots = [await manager.send_task(name, "begin") for name in ("a", "b")]
        await at_rest(manager)
        for root in roots:
            tree = await manager.get_task_tree(root.id)
            assert sum(task.kind is TaskKind.DELEGATED for task in tree) < MOST

    play(scenario, say)


def test_a_tree_that_may_grow_no_more_still_answers_who_waits_and_writes_to_the_user() -> None:
    def say(request: ModelRequest) -> Answer | str:
        match request.agent_id, round_of(request):
            case "a", 0:
                return call("send_mail_with_switch", to_agent="b", subject="well?", body="well?")
            case "a", 1:
                return call("send_mail", to_agent=USER, subject="told", body=results_of(request)[-1])
            case "b", 0:
                mail_id = prompt_of(request).partition("Mail id: ")[2].partition("\n")[0]
                return call("reply_mail", mail_id=mail_id, body="here")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b"):
            await manager.create_agent(name, {"limits": {"max_tasks_per_tree": 2}})
        await manager.run_task("a", "go")
        await at_rest(manager)
        assert await told(manager) == []
        [mail] = await manager.mailbox()
        assert "here" in mail.body

    play(scenario, say)
