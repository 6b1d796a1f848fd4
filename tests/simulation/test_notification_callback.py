"""A program's own function hears of everything that happens in its session."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ai_whisperer import AsyncAgentSessionManager, Notification
from ai_whisperer.errors import ClosedError, InvalidInputError
from ai_whisperer.simulation.loop import simulate
from tests.simulation.stage import opened, play


def test_a_function_is_called_with_each_notification_in_order() -> None:
    heard: list[Notification] = []

    async def main() -> None:
        async with opened(None, lambda _: "42", notification_callback=heard.append) as manager:
            await manager.create_agent("a")
            await manager.run_task("a", "go")
            log = await manager.notifications()
        assert heard == log
        names = [note.name for note in heard]
        assert names.index("async.task.started") < names.index("async.task.completed")
        assert next(note for note in heard if note.name == "async.task.completed").params["result"]["final"] == "42"
        assert {note.session_id for note in heard} == {"default"}

    simulate(main(), seed=0)


def test_a_coroutine_function_may_be_slow_and_may_use_the_manager() -> None:
    heard: list[str] = []

    async def main() -> None:
        async def callback(note: Notification) -> None:
            await asyncio.sleep(10)
            heard.append(note.name)
            if note.name == "async.task.completed" and manager.get_agent_status("a").started:
                await manager.stop_agent("a", reason="enough")

        manager = opened(None, lambda _: "42", notification_callback=callback)
        async with manager:
            await manager.create_agent("a")
            began = asyncio.get_running_loop().time()
            await manager.run_task("a", "go")
            assert asyncio.get_running_loop().time() - began < 5, "nobody waits for the callback"
            await asyncio.sleep(300)
            assert "agent.stopped" in heard

    simulate(main(), seed=0)


def test_a_callback_whose_own_task_was_cancelled_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Notification] = []

    async def callback(note: Notification) -> None:
        heard.append(note)
        if len(heard) == 2:
            waiting = asyncio.ensure_future(asyncio.sleep(10))
            waiting.cancel()
            await waiting

    async def main() -> None:
        async with opened(None, lambda _: "42", notification_callback=callback) as manager:
            await manager.create_agent("a")
            await manager.run_task("a", "go")
            log = await manager.notifications()
        assert heard == log
        assert "was cancelled" in caplog.text

    simulate(main(), seed=0)


def test_a_callback_that_fails_is_called_again_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def callback(note: Notification) -> None:
        heard.append(note.name)
        raise RuntimeError("I cannot")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.run_task("a", "go")

    play(scenario, notification_callback=callback)
    assert "async.task.completed" in heard
    assert "the notification callback failed at agent.created number 1" in caplog.text


def test_a_callback_that_hangs_does_not_hold_up_the_end() -> None:
    async def callback(_: Notification) -> None:
        await asyncio.sleep(1e9)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")

    play(scenario, notification_callback=callback)


def test_a_callback_may_close_the_session() -> None:
    async def main() -> None:
        async def callback(_: Notification) -> None:
            await manager.close()

        manager = opened(None, lambda _: "done", notification_callback=callback)
        await manager.open()
        await manager.create_agent("a")
        await asyncio.sleep(10)
        with pytest.raises(ClosedError):
            manager.list_agents()

    simulate(main(), seed=0)


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(InvalidInputError, match="notification_callback must be a function"):
        AsyncAgentSessionManager(notification_callback=cast(Any, "print"))
