"""Which limits hold, what is set aside of a budget, when a task goes in circles, and how large a conversation is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.core.budgets import on_default_budget, tree_budget
from ai_whisperer.core.contexts import DEFAULT_OUTPUT_TOKENS, input_tokens, output_tokens, turn_bytes
from ai_whisperer.core.limits import (
    DEFAULTS,
    SESSION_DEFAULTS,
    changed,
    effective,
    effective_for_session,
    limits_from,
    source_of,
)
from ai_whisperer.core.repeating import Repeats, not_run_again, refusals_at_end
from ai_whisperer.core.reserving import Estimate, Exhausted, Granted, Ledger, MustWait, TooLittle
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolResult, ToolTurn, Turn, Usage, UserTurn
from ai_whisperer.domain.limits import EffectiveLimits, Limits, LimitSource, SessionLimits
from ai_whisperer.domain.tasks import Budget, Origin, StepKind, StepRecord, StepState, TaskKind, TaskRecord
from ai_whisperer.errors import DefinitionError


def test_the_first_layer_that_states_a_limit_decides() -> None:
    own, session, server = Limits(max_queue_length=1), SessionLimits(max_mail_bytes=2), SessionLimits(max_tokens=3)
    held = effective(own, session, server)
    assert (held.max_queue_length, held.max_mail_bytes, held.max_steps_per_task) == (1, 2, 100)
    whole = effective_for_session(session, server)
    assert (whole.max_tokens, whole.max_started_agents) == (3, 100_000)
    layers = [(LimitSource.AGENT, own), (LimitSource.SESSION, session), (LimitSource.SERVER, server)]
    sources = [
        source_of(name, layers) for name in ("max_queue_length", "max_mail_bytes", "max_tokens", "max_tool_seconds")
    ]
    assert sources == ["agent", "session", "server", "default"]


def test_none_takes_a_limit_back_in_a_mapping_and_says_nothing_in_a_record() -> None:
    stated = SessionLimits(max_tokens=5, max_queue_length=6)
    assert changed(stated, {"max_tokens": None}) == SessionLimits(max_queue_length=6)
    assert changed(stated, Limits(max_mail_bytes=7)) == SessionLimits(
        max_tokens=5, max_queue_length=6, max_mail_bytes=7
    )


@pytest.mark.parametrize(
    "given_limits",
    [{"max_tokens": -1}, {"max_cost_usd": float("nan")}, {5: 5}, {"max_tokens": True}, {"nope": 1}, 5, [1]],
)
def test_limits_that_make_no_sense_are_refused(given_limits: Any) -> None:
    with pytest.raises(DefinitionError):
        limits_from(given_limits, SessionLimits)


def test_an_explicit_budget_is_filled_up_with_what_the_agent_gives_to_trees() -> None:
    limits = EffectiveLimits(max_tokens_per_tree=10, max_cost_usd_per_tree=2.0)
    assert tree_budget(None, EffectiveLimits()) is None
    assert tree_budget(Budget(max_tokens=99), limits) == Budget(max_tokens=99, max_cost_usd=2.0)
    root = TaskRecord(
        session_id="s", id="t", agent_id="a", thread_id="t", kind=TaskKind.PROMPT, prompt="p", arrival=1, cause="x"
    )
    assert on_default_budget(root, limits).budget == Budget(max_tokens=10, max_cost_usd=2.0)
    below = TaskRecord(
        session_id="s", id="u", agent_id="a", thread_id="u", kind=TaskKind.PROMPT, prompt="p", arrival=2, cause="x",
        origin=Origin(root_id="t"),
    )  # fmt: skip
    assert on_default_budget(below, limits).budget is None


def test_a_request_that_fits_is_granted_and_one_that_does_not_waits_for_others() -> None:
    ledger, budget = Ledger(), Budget(max_tokens=100)
    first = ledger.ask(budget, Usage(), Estimate(input_tokens=40, output_tokens=20))
    assert first == Granted(tokens=60, usd=0.0)
    ledger.hold("a", first)
    assert ledger.ask(budget, Usage(), Estimate(input_tokens=40, output_tokens=20)) == MustWait()
    ledger.release("a")
    used = Usage(input_tokens=60)
    alone = ledger.ask(budget, used, Estimate(input_tokens=10, output_tokens=25))
    assert alone == Granted(tokens=35, usd=0.0)
    wider = Budget(max_tokens=150)
    assert ledger.ask(wider, used, Estimate(input_tokens=10, output_tokens=90)) == Granted(
        tokens=90, usd=0.0, max_output_tokens=80
    )
    assert isinstance(ledger.ask(budget, Usage(input_tokens=100), Estimate(input_tokens=1, output_tokens=1)), Exhausted)


def test_a_request_for_which_there_is_no_room_does_not_begin_and_does_not_wait() -> None:
    ledger, budget = Ledger(), Budget(max_tokens=2_000)
    ledger.hold("other", Granted(tokens=500, usd=0.0))
    large = Estimate(input_tokens=1_500, output_tokens=4_096)
    assert ledger.ask(budget, Usage(input_tokens=400), large) == MustWait()
    lack = ledger.ask(budget, Usage(input_tokens=437), large)
    assert isinstance(lack, TooLittle)
    assert (lack.wanted, lack.most, lack.is_money) == (2_001, 2_000, False)
    assert lack.why == "the next request needs about 1,564 tokens, by an estimate, and 1,563 of 2,000 are left"


def test_a_request_for_which_the_money_is_not_enough_does_not_begin() -> None:
    priced = Estimate(input_tokens=1_000, output_tokens=640, input_usd=0.5, output_usd=1.0)
    enough = Ledger().ask(Budget(max_cost_usd=0.6), Usage(), priced)
    assert isinstance(enough, Granted)
    assert enough.max_output_tokens == 64
    lack = Ledger().ask(Budget(max_cost_usd=0.59), Usage(), priced)
    assert isinstance(lack, TooLittle)
    assert lack.why == "the next request needs about 0.6000 USD, by an estimate, and 0.5900 of 0.5900 are left"
    assert lack.is_money


def test_a_price_that_is_not_known_yet_takes_all_that_is_left() -> None:
    ledger, budget = Ledger(), Budget(max_cost_usd=1.0)
    granted = ledger.ask(budget, Usage(), Estimate(input_tokens=10, output_tokens=10))
    assert granted == Granted(tokens=20, usd=1.0)
    ledger.hold("a", granted)
    priced = Estimate(input_tokens=10, output_tokens=10, input_usd=0.1, output_usd=0.1)
    assert ledger.ask(budget, Usage(), priced) == MustWait()


def test_the_answer_is_cut_to_what_the_money_is_enough_for() -> None:
    priced = Estimate(input_tokens=100, output_tokens=1000, input_usd=0.1, output_usd=1.0)
    granted = Ledger().ask(Budget(max_cost_usd=0.6), Usage(), priced)
    assert isinstance(granted, Granted)
    assert granted.max_output_tokens == 500


CALLS = st.lists(st.tuples(st.integers(1, 300), st.integers(64, 300), st.booleans()), max_size=40)


@given(most=st.integers(1, 3000), calls=CALLS)
def test_what_is_used_and_set_aside_never_exceeds_a_budget_if_the_estimates_are_right(
    most: int, calls: list[tuple[int, int, bool]]
) -> None:
    """Each request uses as much as was expected of it; some settle before the next begins, others are under way."""
    ledger, budget, used = Ledger(), Budget(max_tokens=most), 0
    under_way: dict[str, int] = {}
    for number, (tokens_in, tokens_out, settles) in enumerate(calls):
        estimate = Estimate(input_tokens=tokens_in, output_tokens=tokens_out)
        verdict = ledger.ask(budget, Usage(input_tokens=used), estimate)
        if isinstance(verdict, Granted):
            ledger.hold(str(number), verdict)
            under_way[str(number)] = tokens_in + (verdict.max_output_tokens or tokens_out)
            assert used + ledger.reserved[0] <= most
        elif isinstance(verdict, MustWait):
            assert under_way
        if (settles or not isinstance(verdict, Granted)) and under_way:
            settled, tokens = under_way.popitem()
            ledger.release(settled)
            used += tokens
    assert used + sum(under_way.values()) <= most


def model_step(number: int, *calls: ToolCall) -> StepRecord:
    return StepRecord(
        session_id="s", task_id="t", number=number, kind=StepKind.MODEL, state=StepState.DONE,
        answer=Answer(tool_calls=calls),
    )  # fmt: skip


def tool_step(number: int, call: ToolCall, result: ToolResult, state: StepState = StepState.DONE) -> StepRecord:
    return StepRecord(
        session_id="s", task_id="t", number=number, kind=StepKind.TOOL, state=state, call=call, result=result
    )


LOOK = ToolCall(call_id="1", name="look", arguments="{}")
OTHER = ToolCall(call_id="2", name="look", arguments='{"x": 1}')


def journal(*results: str, call: ToolCall = LOOK) -> list[StepRecord]:
    """A journal in which the model asked for this call again and again and asks for it once more."""
    steps: list[StepRecord] = []
    for result in results:
        steps.append(model_step(len(steps) + 1, call))
        steps.append(tool_step(len(steps) + 1, call, ToolResult(content=result)))
    return [*steps, model_step(len(steps) + 1, call)]


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        (journal(), 0),
        (journal("a"), 1),
        (journal("a", "a", "a"), 3),
        (journal("a", "a", "b"), 1),
        (journal("a", "b", "b"), 2),
        (journal("a", "a", call=OTHER), 0),
    ],
)
def test_repeats_are_counted_as_long_as_arguments_and_results_are_the_same(steps: list[StepRecord], count: int) -> None:
    assert Repeats(steps).of(LOOK) == count


def test_calls_beside_it_do_not_break_a_row_and_one_whose_outcome_is_unknown_does() -> None:
    beside: list[StepRecord] = []
    for _ in range(3):
        beside.append(model_step(len(beside) + 1, LOOK, OTHER))
        beside.append(tool_step(len(beside) + 1, LOOK, ToolResult(content="a")))
        beside.append(tool_step(len(beside) + 1, OTHER, ToolResult(content=str(len(beside)))))
    beside.append(model_step(10, LOOK, OTHER))
    beside.append(tool_step(11, LOOK, ToolResult(content="a")))
    assert (Repeats(beside).of(LOOK), Repeats(beside).of(OTHER)) == (3, 1)
    cut = journal("a", "a")
    cut[1] = tool_step(2, LOOK, ToolResult(content="a"), state=StepState.UNKNOWN)
    assert Repeats(cut).of(LOOK) == 1


def test_an_answer_of_very_many_calls_looks_at_each_step_before_it_once() -> None:
    class Watched(list[StepRecord]):
        looked_at = 0

        def __reversed__(self) -> Iterator[StepRecord]:
            for step in super().__reversed__():
                self.looked_at += 1
                yield step

    calls = [ToolCall(call_id=str(number), name="look", arguments=f"{number % 500}") for number in range(1_000)]
    steps = Watched()
    for _ in range(2):
        steps.append(model_step(len(steps) + 1, *calls))
        steps.extend(tool_step(len(steps) + 1 + at, call, ToolResult(content="a")) for at, call in enumerate(calls))
    steps.append(model_step(len(steps) + 1, *calls))
    repeats = Repeats(steps)
    assert {repeats.of(call) for call in calls} == {4}
    assert steps.looked_at == len(steps)


def test_refusals_belong_to_the_row_and_are_counted_apart() -> None:
    refused = not_run_again(LOOK, 2)
    steps = journal("a", "a")
    for _ in range(3):
        steps.append(tool_step(len(steps) + 1, LOOK, refused))
        steps.append(model_step(len(steps) + 1, LOOK))
    assert Repeats(steps).of(LOOK) == 2
    assert refusals_at_end(steps[:-1]) == 3
    assert refusals_at_end(journal("a")[:-1]) == 0
    assert refusals_at_end([]) == 0


def test_a_conversation_is_as_large_as_what_is_said_in_it() -> None:
    turns: list[Turn] = [
        UserTurn(text="äö"),
        AnswerTurn(answer=Answer(text="abc", reasoning="de", tool_calls=(LOOK,), provider="12345")),
        ToolTurn(call=LOOK, content="four"),
    ]
    assert [turn_bytes(turn) for turn in turns] == [4, 3 + 2 + 2 + 5, 4]


def test_a_request_is_guessed_from_the_last_usage_and_what_came_after_it() -> None:
    turns: list[Turn] = [UserTurn(text="x" * 400)]
    assert input_tokens("y" * 40, (), turns) == 111
    answered = Answer(text="ok", usage=Usage(input_tokens=1000, output_tokens=50))
    turns += [AnswerTurn(answer=answered), ToolTurn(call=LOOK, content="z" * 80)]
    assert input_tokens("y" * 40, (), turns) == 1070
    assert (output_tokens({}), output_tokens({"max_tokens": 9})) == (DEFAULT_OUTPUT_TOKENS, 9)


def test_the_docs_have_every_limit_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "limits.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"^\| `(\w+)` \| ([\w,]+) \|", page, re.MULTILINE))
    held = {**msgspec.structs.asdict(DEFAULTS), **msgspec.structs.asdict(SESSION_DEFAULTS)}
    assert written == {name: f"{value:,.0f}" if value else "none" for name, value in held.items()}
