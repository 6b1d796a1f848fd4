"""Subscribers to the numbered log."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, Notification
from ai_whisperer.models.scripted import ScriptedModel
from ai_whisperer.models.scripted_rules import Rule
from ai_whisperer.runtime.session.log import Subscription
from tests.simulation.stage import play


async def take(subscription: Subscription, count: int) -> list[Notification]:
    return [await anext(subscription) for _ in range(count)]


def test_a_subscriber_from_the_start_sees_everything_once_and_in_order() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        early = manager.subscribe(after=0)
        reading = asyncio.ensure_future(take(early, 9))
        await manager.create_agent("alice")
        await manager.run_task("alice", "go")
        late = manager.subscribe(after=0)
        live = await reading
        assert live == await take(late, 9) == await manager.notifications()
        assert [note.seq for note in live] == list(range(1, 10))
        assert all(note.session_id == "default" and note.cause for note in live)

    play(scenario)


def test_a_subscriber_that_comes_back_with_its_number_misses_nothing_and_sees_nothing_twice() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        seen: list[int] = []
        cursor = 0
        for _ in range(10):
            subscription = manager.subscribe(after=cursor)
            working = asyncio.ensure_future(manager.run_task("alice", "go"))
            seen.extend(note.seq for note in await take(subscription, 6))
            cursor = subscription.cursor
            subscription.close()
            await working
        assert seen == list(range(1, 61))

    play(scenario)


def test_a_slow_subscriber_is_served_from_the_store_and_costs_the_others_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        slow = manager.subscribe(after=0)
        await manager.create_agent("bob", auto_start=False)
        for n in range(9_000):
            await manager.send_mail("bob", f"n{n}", "x")
        assert len(manager._session.kernel.log._recent) <= 2 * 4_096
        notes = await take(slow, 9_001)
        assert [note.seq for note in notes] == list(range(1, 9_002))

    play(scenario)


def test_a_subscription_says_how_far_behind_it_is() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        subscription = manager.subscribe(after=0)
        ahead = manager.subscribe(after=10)
        assert (subscription.lag, ahead.lag) == (2, 0)
        await anext(subscription)
        assert subscription.lag == 1
        await manager.create_agent("bob", auto_start=False)
        assert subscription.lag == 2
        await take(subscription, 2)
        assert subscription.lag == 0

    play(scenario)


def test_a_reader_that_stands_still_holds_only_a_few_notifications() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob", auto_start=False)
        for n in range(100):
            await manager.send_mail("bob", f"n{n}", "x")
        recent = manager.subscribe(after=0)
        await anext(recent)
        assert len(recent._page) < 32
        manager._session.kernel.log._recent.clear()
        from_store = manager.subscribe(after=0)
        await anext(from_store)
        assert len(from_store._page) < 32

    play(scenario)


def test_a_reader_takes_a_bounded_size_at_once_from_memory_and_from_the_store() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for number in range(60):
            await manager.broadcast_event("page", f"{number} {'x' * 200_000}")
        assert manager._session.kernel.log._recent.size <= 8 << 20
        for subscription in (manager.subscribe(after=0), manager.subscribe(after=58)):
            assert len(await subscription.some()) == 1
            assert not subscription._page
        assert [note.seq for note in await take(manager.subscribe(after=0), 60)] == list(range(1, 61))

    play(scenario)


def test_a_subscriber_from_now_on_sees_only_what_comes() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        subscription = manager.subscribe()
        await manager.create_agent("bob")
        assert (await anext(subscription)).params["agentId"] == "bob"

    play(scenario)


def test_the_pieces_of_a_stream_come_in_order_told_apart_by_channel_and_unnumbered() -> None:
    rule = Rule(text="[ANALYSIS]hm\n[FINAL]hello there", chunk_characters=3, chunk_seconds=0.1)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        with_deltas = manager.subscribe(deltas=True)
        without = manager.subscribe()
        await manager.run_task("alice", "go")
        await manager.create_agent("end")
        pieces: dict[str, str] = {}
        names: list[str] = []
        async for note in with_deltas:
            if note.name == "async.task.delta":
                assert note.seq == 0
                pieces[note.params["channel"]] = pieces.get(note.params["channel"], "") + note.params["text"]
            if not names or names[-1] != note.name:
                names.append(note.name)
            if note.name == "agent.created":
                break
        assert {channel: text.strip() for channel, text in pieces.items()} == {"analysis": "hm", "final": "hello there"}
        assert names.index("step.started") < names.index("async.task.delta") < names.index("step.finished")
        seen = [note.name for note in await take(without, 8)]
        assert "async.task.delta" not in seen

    play(scenario, models=lambda _: ScriptedModel([rule]))


def test_a_reader_that_lags_gets_the_pieces_joined_and_no_state_change_less() -> None:
    answer = "".join(f"{number:07} " for number in range(8_000))
    rule = Rule(text=answer, chunk_characters=8)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        after = manager.last_seq
        lagging = manager.subscribe(after=after, deltas=True)
        await manager.run_task("alice", "go")
        await manager.flushed()
        read: list[Notification] = []
        while lagging.lag:
            read.append(await anext(lagging))
        (delta,) = [note for note in read if note.seq == 0]
        assert delta.params["text"] == answer[delta.params["skipped"] :]
        assert [note for note in read if note.seq] == await manager.notifications(after=after)
        names = [note.name for note in read]
        assert names.index("step.started") < names.index("async.task.delta") < names.index("step.finished")

    play(scenario, models=lambda _: ScriptedModel([rule]))


def test_a_subscription_ends_when_the_session_is_closed() -> None:
    seen: list[str] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        async def read() -> None:
            seen.extend([note.name async for note in manager.subscribe(after=0)])

        reading = asyncio.ensure_future(read())
        await manager.create_agent("alice")
        await manager.close()
        await reading

    play(scenario)
    assert seen == ["agent.created", "agent.started"]


def test_a_number_beyond_the_end_waits_for_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        subscription = manager.subscribe(after=2)
        await manager.create_agent("alice")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await anext(subscription)
        await manager.create_agent("bob")
        assert (await anext(subscription)).seq == 3

    play(scenario)
