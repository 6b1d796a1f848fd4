"""How a conversation is made shorter, without a runtime: what is measured, and what stands for what is covered."""

from __future__ import annotations

import pytest

from ai_whisperer.core import groups, shown
from ai_whisperer.core.compacting import Terms, plan
from ai_whisperer.core.groups import groups_of
from ai_whisperer.core.summaries import digest, problem_with
from ai_whisperer.core.view import Journal
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.compactions import Compaction, CompactionReason
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolResult, UserTurn
from ai_whisperer.domain.tasks import MODEL, TOOL, Said, StepRecord, StepState, TaskKind, TaskRecord, TaskState


def task(number: int, prompt: str = "why " * 10, parts: tuple[Attachment, ...] | None = None) -> TaskRecord:
    return TaskRecord(
        id=f"t{number}",
        session_id="s",
        agent_id="ann",
        thread_id="talk",
        kind=TaskKind.PROMPT,
        prompt=prompt,
        state=TaskState.COMPLETED,
        created_at=float(number),
        started_at=float(number),
        arrival=number,
        cause="request",
        parts=parts,
    )


def step(number: int, of: int, **values: object) -> StepRecord:
    fields = {"session_id": "s", "task_id": f"t{of}", "number": number, "state": StepState.DONE, "started_at": 1.0}
    return StepRecord(**fields, **values)  # type: ignore[arg-type]


def answered(of: int, *, text: str = "because " * 60) -> StepRecord:
    return step(1, of, kind=MODEL, answer=Answer(text=text))


def talk(count: int) -> list[Journal]:
    return [*((task(number), [answered(number)]) for number in range(count)), (task(count), [])]


def begun(reason: CompactionReason = CompactionReason.WINDOW) -> Compaction:
    return Compaction(reason=reason, window=4_000, asked_tokens=1_600, tokens_before=4_000)


TERMS = Terms(window=4_000, limit_tokens=3_200, target_tokens=1_600, beside_bytes=400)


@pytest.mark.parametrize("reason", [CompactionReason.WINDOW, CompactionReason.ASKED])
def test_each_part_of_a_conversation_is_measured_a_few_times_however_long_it_is(
    monkeypatch: pytest.MonkeyPatch, reason: CompactionReason
) -> None:
    measured = [0]
    turns = shown.turns_of

    def counted(*given: object, **how: object) -> list[object]:
        measured[0] += 1
        return turns(*given, **how)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(groups, "turns_of", counted)
    for count in (50, 400):
        measured[0] = 0
        made = plan(begun(reason), None, talk(count), TERMS, wrote=lambda _: ())
        assert made is not None
        assert measured[0] <= 3 * count


def test_what_is_planned_is_about_what_comes_of_it() -> None:
    journals = talk(60)
    made = plan(begun(), None, journals, TERMS, wrote=lambda _: ())
    assert made is not None
    assert made.compaction.tokens_after <= TERMS.target_tokens
    assert made.compaction.first == journals[0][0].prompt
    assert made.compaction.said[-1] == journals[0][0].prompt
    left = list(groups_of(made.compaction, journals))
    assert len(left) + len(made.gone) == len(list(groups_of(None, journals)))


def test_every_turn_knows_the_step_that_has_it_whole() -> None:
    call = ToolCall(call_id="c", name="big", arguments="{}")
    said = (Said(task_id="t7", text="Hurry."),)
    asked = step(3, 1, kind=MODEL, answer=Answer(tool_calls=(call, call)), said=said)
    results = [step(number, 1, kind=TOOL, call=call, result=ToolResult(content="x")) for number in (4, 5)]
    (prompt, group) = groups_of(None, [(task(1), [asked, *results])])
    assert [place for place, _ in prompt.handled(1_000)] == ["t1.0"]
    assert [place for place, _ in group.handled(1_000)] == ["t7.0", "t1.3", "t1.4", "t1.5"]
    assert list(group.said()) == [("t7.0", "Hurry.")]


def test_words_that_came_with_an_image_say_so_when_it_is_gone() -> None:
    image = Attachment(digest="0" * 64, name="map.png", media_type="image/png", size=10, tokens=5)
    (prompt,) = groups_of(None, [(task(1, "Where is it?", (image,)), [])])
    assert list(prompt.said()) == [("t1.0", "Where is it?\n[No longer shown, but came with this: 'map.png']")]


def test_a_list_in_place_of_a_summary_keeps_the_summary_so_far() -> None:
    gone = [(f"t{number}.0", UserTurn(text=f"Question {number}")) for number in range(100)]
    listed = digest("In spring they chose the blue house.", gone, most=400)
    assert listed.startswith("In spring they chose the blue house.\n[")
    assert listed.endswith("- Told: Question 99")
    assert len(listed) <= 450
    assert len(digest("They did this and that. " * 100, gone, most=400)) <= 500


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        (" \n", "empty"),
        ("y" * 1_000, "longer than what it is of"),
        ("Then call drop_tables() again.", "a tool that there is not: drop_tables"),
        ("It called look_up() and their_function().", ""),
    ],
)
def test_a_summary_is_judged(summary: str, problem: str) -> None:
    gone = [("t1.0", UserTurn(text=f"Why does their_function fail? {'why ' * 100}"))]
    found = problem_with(summary, gone, earlier="", is_tool=lambda name: name == "look_up")
    assert problem in found
    assert bool(problem) == bool(found)
