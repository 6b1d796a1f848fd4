"""Conversations that grow too long for their models are made shorter; nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.core.contexts import turn_bytes
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolTurn, Usage, UserTurn
from ai_whisperer.domain.tasks import StepKind, StepRecord, TaskRecord, TaskState
from ai_whisperer.errors import (
    DefinitionError,
    InvalidInputError,
    ModelRefusedError,
    ModelServerError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation import stage
from tests.simulation.stage import Say, names_of, prompt_of, results_of, round_of

SUMMARY_OF = "You write the summary"
WINDOW = 6_000


def is_summary(request: ModelRequest) -> bool:
    return request.system.startswith(SUMMARY_OF)


def texts_of(request: ModelRequest) -> str:
    return "\n".join(
        turn.text if isinstance(turn, UserTurn) else turn.content + turn.note if isinstance(turn, ToolTurn) else ""
        for turn in request.turns
    )


def step_of(request: ModelRequest) -> int:
    """How many answers the task has had, by the answers that the model remembers of it."""
    return STEPS.setdefault(request.step_id, sum(step.startswith(request.step_id.split(".")[0]) for step in STEPS))


STEPS: dict[str, int] = {}


def tokens_of(request: ModelRequest) -> int:
    return sum(map(turn_bytes, request.turns)) // 4


class Listener:
    """A model that chats, summarizes when it is asked to, and remembers all that it was shown."""

    def __init__(self, say: Say = lambda _: "fine " * 100, summary: str = "They talked.") -> None:
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self._say = say
        self.summary: Callable[[ModelRequest], Answer | str] = lambda _: summary

    def __call__(self, request: ModelRequest) -> Answer | str:
        if is_summary(request):
            self.summaries.append(request)
            return self.summary(request)
        self.requests.append(request)
        return self._say(request)


def call(name: str, **arguments: Any) -> Answer:
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> Answer:
    """Calls in an answer of a model that does not say how long its request was."""
    return replace(stage.calls(*wanted), usage=Usage())


def play(scenario: stage.Scenario, model: Listener) -> None:
    STEPS.clear()
    stage.play(scenario, model, tools=[big])


async def chat(manager: AsyncAgentSessionManager, count: int, *, agent: str = "ann", first: int = 0) -> None:
    for number in range(first, first + count):
        await manager.run_task(agent, f"Question {number}: {'why ' * 50}", thread_id="talk")


async def create(manager: AsyncAgentSessionManager, **context: Any) -> None:
    await manager.create_agent("ann", {"tools": ["check_mail", "big"], "context": {"window": WINDOW, **context}})


async def steps_of(manager: AsyncAgentSessionManager, kind: StepKind = StepKind.COMPACTION) -> list[StepRecord]:
    tasks = await manager.list_tasks("ann", limit=1_000)
    return [step for task in tasks[::-1] for step in await manager.list_steps(task.id) if step.kind is kind]


@tool
async def big(size: int) -> str:
    """Brings much."""
    return "<" + "x" * size + ">"


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


def test_a_request_that_the_provider_finds_too_long_is_made_at_half_its_size() -> None:
    def picky(request: ModelRequest) -> str:
        if tokens_of(request) > 2_000:
            raise ModelTooLongError
        return "fine " * 100

    model = Listener(picky)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": []})
        await chat(manager, 20)
        made = [step.compaction for step in await steps_of(manager)]
        assert {each.reason for each in made if each is not None} == {"refused"}
        assert (await manager.list_tasks("ann"))[0].state is TaskState.COMPLETED

    play(scenario, model)
    assert "Question 0:" in texts_of(model.requests[-1])


def test_a_request_that_is_too_long_at_any_size_fails_with_the_sizes() -> None:
    def never(request: ModelRequest) -> str:
        if len(request.turns) > 9:
            raise ModelTooLongError("The conversation is too long for the model.")
        return "fine " * 100

    def refuse(request: ModelRequest) -> str:
        raise ModelTooLongError("The conversation is too long for the model.")

    talk: list[Say] = [never, refuse]

    def say(request: ModelRequest) -> Answer | str:
        return talk[0](request)

    model = Listener(say)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"tools": []})
        await chat(manager, 4)
        del talk[0]
        task = await manager.send_task("ann", "last", thread_id="talk")
        failed = await manager.wait_task(task)
        assert failed.state is TaskState.FAILED
        assert failed.error is not None
        assert failed.error.code == "model_too_long"
        assert "made shorter" in failed.error.message

    play(scenario, model)


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        ("x" * 60_000, "longer than what it is of"),
        ("Then I called drop_all_tables() twice.", "a tool that there is not: drop_all_tables"),
    ],
)
def test_a_summary_that_cannot_be_used_is_replaced_by_a_list(summary: str, problem: str) -> None:
    model = Listener(summary=summary)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)
        made = (await steps_of(manager))[0].compaction
        assert made is not None
        assert problem in made.problem
        assert made.kind == "trim"
        assert "- Agent: fine" in made.summary
        assert "earlier lines are left out" in made.summary
        assert "drop_all_tables" not in made.summary

    play(scenario, model)


def test_a_summary_that_nobody_writes_does_not_stop_the_talk() -> None:
    def refuse(_: ModelRequest) -> str:
        raise ModelRefusedError("The model does not want to.")

    model = Listener()
    model.summary = refuse

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)
        made = (await steps_of(manager))[0].compaction
        assert made is not None
        assert "does not want to" in made.problem

    play(scenario, model)


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


def test_a_process_that_dies_while_a_summary_is_written_asks_for_it_again() -> None:
    model = Listener()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 40)

    async def after(manager: AsyncAgentSessionManager) -> None:
        begun = [task for task in await manager.list_tasks("ann") if not task.state.ended]
        for task in begun:
            await manager.wait_task(task)
        (step, *_) = await steps_of(manager)
        assert step.attempt == 2
        assert step.compaction is not None
        assert step.compaction.summary == "They talked."
        await chat(manager, 1, first=100)
        assert "They talked." in texts_of(model.requests[-1])

    stage.play_over_crash(
        before, after, model, tools=[big], crash_after_seconds=_before_the_first_summary(), down_for_seconds=5
    )
    assert [request.attempt for request in model.summaries] == [2]


def _before_the_first_summary() -> float:
    """Half a second after the first summary was asked for, in a run of the same talk."""
    model = Listener()
    times: list[float] = []

    def note(_: ModelRequest) -> str:
        times.append(asyncio.get_running_loop().time())
        return "They talked."

    model.summary = note

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)

    play(scenario, model)
    return times[0] + 0.5


def test_a_view_after_a_restart_is_the_one_before() -> None:
    model = Listener()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 25)

    async def after(manager: AsyncAgentSessionManager) -> None:
        shown = model.requests[-1].turns
        await chat(manager, 1, first=100)
        again = model.requests[-1].turns
        assert again[: len(shown)] == shown
        assert isinstance(again[len(shown)], AnswerTurn)

    stage.play_over_crash(before, after, model, tools=[big], crash_after_seconds=1_000)


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


def test_a_person_sees_how_long_a_talk_is_and_makes_it_shorter() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        before = await manager.get_context("ann")
        assert (before.thread_id, before.window, before.window_known) == ("talk", WINDOW, True)
        assert before.compaction is None
        task = await manager.compact_context("ann", thread_id="talk", task_id="shorter")
        assert (await manager.compact_context("ann", task_id="shorter")).id == task.id
        done = await manager.wait_task(task)
        after = await manager.get_context("ann", thread_id="talk")
        assert done.result is not None
        assert done.result.final == (
            f"The conversation had about {before.tokens:,} tokens and has {after.tokens:,} now."
        )
        assert after.tokens < before.tokens
        assert after.compaction is not None
        assert after.compaction.reason == "asked"
        assert after.compacted_in == "shorter.1"
        await chat(manager, 1, first=50)
        shown = texts_of(model.requests[-1])
        assert "They talked." in shown
        assert "Make this conversation shorter" not in shown

    play(scenario, model)
    assert len(model.requests) == 9


def test_a_thread_that_there_is_not_is_named_with_the_nearest() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        with pytest.raises(InvalidInputError, match="has no conversation yet"):
            await manager.get_context("ann")
        await chat(manager, 1)
        with pytest.raises(InvalidInputError, match=r"has no thread 'tlak'\. Did you mean 'talk'"):
            await manager.compact_context("ann", thread_id="tlak")

    play(scenario, Listener())


def test_a_talk_that_is_short_already_stays_as_it_is() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 1)
        done = await manager.wait_task(await manager.compact_context("ann"))
        assert done.result is not None
        assert "nothing to make shorter" in done.result.final
        assert (await manager.get_context("ann")).compaction is None

    play(scenario, model)
    assert model.summaries == []


def test_a_summary_is_paid_for_like_any_request() -> None:
    model = Listener()
    model.summary = lambda _: Answer(text="They talked.", usage=Usage(input_tokens=700, output_tokens=30, cost_usd=0.5))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        before = manager.get_agent_status("ann").usage
        await manager.wait_task(await manager.compact_context("ann"))
        after = manager.get_agent_status("ann").usage
        assert after.model_calls - before.model_calls == 1
        assert after.input_tokens - before.input_tokens == 700
        assert after.cost_usd == 0.5

    play(scenario, model)


def test_a_summary_waits_for_a_provider_that_is_down_and_is_asked_for_again() -> None:
    model = Listener()
    downs = [ModelUnavailableError(), ModelServerError()]

    def summarize(_: ModelRequest) -> str:
        if downs:
            raise downs.pop()
        return "They talked."

    model.summary = summarize

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        done = await manager.wait_task(await manager.compact_context("ann", task_id="shorter"))
        (step,) = await manager.list_steps(done)
        assert (step.kind, step.attempt, step.requests) == (StepKind.COMPACTION, 3, 3)
        assert (await names_of(manager)).count("step.retried") == 2

    play(scenario, model)


def test_an_agent_that_is_paused_while_a_summary_is_written_resumes_with_it() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        task = await manager.compact_context("ann")
        await asyncio.sleep(0.5)
        await manager.interrupt_agent("ann")
        await asyncio.sleep(5)
        assert (await manager.get_task(task)).state is TaskState.RUNNING
        await manager.resume_agent("ann")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        report = await manager.get_context("ann")
        assert report.compaction is not None
        assert report.compaction.summary == "They talked."

    play(scenario, model)


def test_a_compaction_that_is_cancelled_leaves_the_talk_as_it_was() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        task = await manager.compact_context("ann")
        await asyncio.sleep(0.5)
        await manager.cancel_task(task)
        assert (await manager.get_context("ann")).compaction is None
        await chat(manager, 1, first=50)
        assert "Question 3:" in texts_of(model.requests[-1])
        assert (await manager.wait_task(await manager.retry_task(task))).state is TaskState.COMPLETED
        assert (await manager.get_context("ann")).compaction is not None

    play(scenario, model)


def test_another_model_writes_the_summaries_if_the_definition_says_so() -> None:
    made: list[str] = []
    models = {"talker": Listener(), "writer": Listener(summary="Written by another.")}

    def model_named(name: str) -> FunctionModel:
        made.append(name)
        return FunctionModel(models[name], latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"model": "talker", "tools": [], "context": {"model": "writer"}})
        await chat(manager, 6)
        assert made == ["talker"]
        await manager.wait_task(await manager.compact_context("ann"))
        assert made == ["talker", "writer"]
        report = await manager.get_context("ann")
        assert report.compaction is not None
        assert report.compaction.summary == "Written by another."

    stage.play(scenario, models=model_named)


def test_a_prompt_that_no_window_can_hold_is_refused_with_the_sizes() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        failed = await manager.wait_task(await manager.send_task("ann", "why " * 10_000))
        assert failed.error is not None
        assert failed.error.code == "context_limit"
        assert "cannot be made shorter; the model takes 6,000" in failed.error.message

    play(scenario, model)
    assert model.requests == []


@pytest.mark.parametrize(
    ("context", "complaint"),
    [
        ({"window": 10}, "context.window must be at least 1000, not 10"),
        ({"keep": 0}, "context.keep must be at least 1, not 0"),
        ({"compact": "never"}, "context.compact"),
        ({"windw": 10_000}, "Did you mean `context.window`|Did you mean `window`"),
        ({"window": "much"}, "context.window` must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_field(context: dict[str, Any], complaint: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=complaint):
            await manager.create_agent("ann", {"context": context})

    play(scenario, Listener())


def test_a_window_that_the_prompt_fills_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match="the prompt alone has about 2,500"):
            await manager.create_agent("ann", {"prompt": "x" * 10_000, "context": {"window": 4_000}})

    play(scenario, Listener())


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
