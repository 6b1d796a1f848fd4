import asyncio
import gc
import inspect

import pytest

from ai_whisperer.runtime.session.background import Background, to_its_end


async def note(done: list[str], what: str) -> None:
    done.append(what)


def test_a_chore_is_done_and_forgotten() -> None:
    async def scenario() -> list[str]:
        chores = Background(asyncio.get_running_loop())
        done: list[str] = []
        chores.run(note(done, "it"), name="it")
        await asyncio.sleep(0.001)
        assert not chores._tasks
        return done

    assert asyncio.run(scenario()) == ["it"]


def test_a_chore_that_could_not_begin_before_the_close_is_let_go() -> None:
    async def scenario() -> list[str]:
        chores = Background(asyncio.get_running_loop())
        done: list[str] = []
        chores.run(note(done, "too late"), name="it")
        await chores.close()
        await asyncio.sleep(0.001)
        gc.collect()  # a coroutine that nobody awaited or closed would complain here
        return done

    assert asyncio.run(scenario()) == []


def test_after_the_close_no_chore_begins() -> None:
    async def scenario() -> list[str]:
        chores = Background(asyncio.get_running_loop())
        await chores.close()
        done: list[str] = []
        chore = note(done, "too late")
        chores.run(chore, name="it")
        assert inspect.getcoroutinestate(chore) == inspect.CORO_CLOSED
        await asyncio.sleep(0.001)
        return done

    assert asyncio.run(scenario()) == []


def test_what_has_to_end_ends_before_a_cancellation_is_told() -> None:
    async def scenario() -> list[str]:
        done: list[str] = []

        async def slowly() -> None:
            await asyncio.sleep(0.01)
            done.append("closed")

        waiting = asyncio.create_task(to_its_end(slowly()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return done

    assert asyncio.run(scenario()) == ["closed"]


def test_what_goes_wrong_in_it_is_told() -> None:
    async def badly() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(to_its_end(badly()))
