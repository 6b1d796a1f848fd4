"""Conversations that grow too long for their models are made shorter; nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolTurn
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.errors import (
    ModelRefusedError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation.context_stage import (
    WINDOW,
    Listener,
    call,
    calls,
    chat,
    create,
    play,
    step_of,
    steps_of,
    texts_of,
    tokens_of,
)
from tests.simulation.stage import names_of, prompt_of, results_of, round_of


def test_a_long_talk_is_summarized_before_it_is_too_long() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 40)
        made = [step.compaction for step in await steps_of(manager)]
        assert made
        for each in made:
            assert each is not None
            assert each.kind == "summary"
            assert each.tokens_after < each.tokens_before
            assert each.tokens_after <= 0.4 * WINDOW + 1
        assert (await names_of(manager)).count("context.compacted") == len(made)
        last = texts_of(model.requests[-1])
        assert "Question 0:" in last
        assert "Question 39:" in last
        assert "Question 38:" in last
        assert "They talked." in last
        assert "How things stand now" in last

    play(scenario, model)
    assert all(tokens_of(request) <= 0.8 * WINDOW for request in model.requests)


def test_what_is_shown_only_grows_until_the_next_compaction() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 30)

    play(scenario, model)
    changes = 0
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        changes += after.turns[: len(before.turns)] != before.turns
    assert changes == len(model.summaries) > 0


def test_old_results_become_a_line_first_and_can_be_read_again() -> None:
    def work(request: ModelRequest) -> Answer | str:
        step = step_of(request)
        if step < 4:
            return call("big", size=4_000 + step)
        if step == 4:
            line = next(turn for turn in request.turns if isinstance(turn, ToolTurn) and "read_result" in turn.note)
            wanted = line.note.split('step "')[1].split('"')[0]
            return call("read_result", step=wanted, offset=3_990)
        return results_of(request)[-1]

    model = Listener(work)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        assert (await manager.run_task("ann", "work")).endswith("xxxxxxxxxxx>")
        made = [step.compaction for step in await steps_of(manager)]
        assert [each.kind for each in made if each is not None][:1] == ["trim"]

    play(scenario, model)
    assert model.summaries == []
    told = [any(spec.name == "read_result" for spec in request.tools) for request in model.requests]
    assert told == sorted(told)
    assert not told[0]
    assert told[-1]
    assert len({tuple(spec.name for spec in request.tools[:2]) for request in model.requests}) == 1


def test_a_huge_result_is_kept_whole_and_shown_as_its_beginning_and_end() -> None:
    def work(request: ModelRequest) -> Answer | str:
        return "done" if round_of(request) else call("big", size=400_000)

    model = Listener(work)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": ["big"]})
        task = await manager.wait_task(await manager.send_task("ann", "work"))
        kept = (await manager.list_steps(task.id))[1].result
        assert kept is not None
        assert len(kept.content) == 400_002

    play(scenario, model)
    shown = next(turn for turn in model.requests[-1].turns if isinstance(turn, ToolTurn))
    assert len(shown.content) < 101_000
    assert shown.content[0] == "<"
    assert shown.content[-1] == ">"
    assert "read_result" in shown.note


def test_with_compact_off_nothing_is_left_out() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, compact="off")
        await chat(manager, 40)

    play(scenario, model)
    assert all(f"Question {number}:" in texts_of(model.requests[-1]) for number in range(40))


def test_mail_that_the_model_was_not_shown_yet_is_shown_whole() -> None:
    body = "tell me " * 200

    def work(request: ModelRequest) -> Answer | str:
        if "work" not in prompt_of(request):
            return "fine"
        step = step_of(request)
        return "done" if step > 6 else call("check_mail") if step == 6 else call("big", size=3_000 + step)

    model = Listener(work)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        task = await manager.send_task("ann", "work")
        sent = [await manager.send_mail("ann", f"s{number}", f"{number} {body}") for number in range(3)]
        await manager.wait_task(task)
        boxed = {mail.id: mail.state for mail in await manager.mailbox("ann")}
        shown = texts_of(model.requests[-1]) if model.requests else ""
        assert all(boxed[mail.id] == "read" for mail in sent)
        assert all(f"{number} {body}".strip() in shown for number in range(3))

    play(scenario, model)


def test_a_covered_task_that_is_retried_is_part_of_the_talk_again() -> None:
    broken = [True]

    def fail_once(request: ModelRequest) -> str:
        if "Broken" in prompt_of(request) and broken[0]:
            raise ModelRefusedError
        return "mended " * 20 if "Broken" in prompt_of(request) else "fine " * 100

    model = Listener(fail_once)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 2)
        failed = await manager.wait_task(await manager.send_task("ann", "Broken", thread_id="talk"))
        await chat(manager, 25, first=10)
        assert await steps_of(manager)
        broken.clear()
        broken.append(False)
        await manager.wait_task(await manager.retry_task(failed.id))
        await chat(manager, 1, first=50)
        answers = [turn.answer.text for turn in model.requests[-1].turns if isinstance(turn, AnswerTurn)]
        assert "mended " * 20 in answers

    play(scenario, model)


def test_tool_calls_and_their_results_stay_together() -> None:
    def work(request: ModelRequest) -> Answer | str:
        step = step_of(request)
        return calls(*(("big", {"size": 700 + 3 * step + at}) for at in range(3))) if step < 12 else "done"

    model = Listener(work)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await manager.run_task("ann", "work")

    play(scenario, model)
    assert model.summaries
    for request in model.requests:
        open_calls: list[str] = []
        for turn in request.turns:
            if isinstance(turn, ToolTurn):
                assert open_calls.pop(0) == turn.call.call_id
            else:
                assert open_calls == []
                open_calls = [each.call_id for each in turn.answer.calls] if isinstance(turn, AnswerTurn) else []


def test_an_exchange_in_a_long_thread_reads_no_more_than_one_in_a_short_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read grows with what is shown, not with what was ever said."""
    read: dict[str, int] = {}
    tasks_of_thread, steps_of_thread = SqliteStore.tasks_of_thread, SqliteStore.steps_of_thread

    async def tasks(self: SqliteStore, *names: str, **bounds: Any) -> list[TaskRecord]:
        found = await tasks_of_thread(self, *names, **bounds)
        read["tasks"] = len(found)
        return found

    async def steps(self: SqliteStore, *names: str, **bounds: Any) -> dict[str, list[StepRecord]]:
        found = await steps_of_thread(self, *names, **bounds)
        read["steps"] = sum(map(len, found.values()))
        return found

    monkeypatch.setattr(SqliteStore, "tasks_of_thread", tasks)
    monkeypatch.setattr(SqliteStore, "steps_of_thread", steps)
    most: dict[int, int] = {}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        for done in range(0, 400, 20):
            counts = []
            for number in range(done, done + 20):
                await chat(manager, 1, first=number)
                counts.append(read["tasks"] + read["steps"])
            most[done + 20] = max(counts)

    play(scenario, Listener(lambda _: "fine " * 40))
    assert most[400] <= 1.3 * most[40]
