from ai_whisperer.core.next_step import CallTools, Complete, Continue, Fail, RequestModel, next_action
from ai_whisperer.core.shown import mails_shown_by, turns
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolResult, ToolTurn, UserTurn
from ai_whisperer.domain.tasks import Failure, StepKind, StepRecord, StepState, TaskKind, TaskRecord

TASK = TaskRecord(
    session_id="s", id="t", agent_id="a", thread_id="t", kind=TaskKind.PROMPT, prompt="Do it", arrival=1, cause="test"
)


def asked(number: int, answer: Answer | None = None, *, state: StepState = StepState.DONE) -> StepRecord:
    return StepRecord(session_id="s", task_id="t", number=number, kind=StepKind.MODEL, state=state, answer=answer)


def call(index: int) -> ToolCall:
    return ToolCall(call_id=f"c{index}", name="tool", arguments="{}")


def called(number: int, content: str | None, *, mails: tuple[str, ...] = ()) -> StepRecord:
    return StepRecord(
        session_id="s",
        task_id="t",
        number=number,
        kind=StepKind.TOOL,
        state=StepState.STARTED if content is None else StepState.DONE,
        call=call(number),
        result=None if content is None else ToolResult(content=content, mails=mails),
    )


TWO_CALLS = Answer(tool_calls=(call(2), call(3)))


def test_a_task_begins_with_a_model_request() -> None:
    assert next_action([], max_steps=10) == RequestModel(number=1)


def test_a_request_that_was_under_way_is_repeated_under_its_number() -> None:
    step = asked(1, state=StepState.STARTED)
    assert next_action([step], max_steps=10) == RequestModel(number=1, repeats=step)


def test_tool_calls_get_the_numbers_after_their_request() -> None:
    action = next_action([asked(1, TWO_CALLS)], max_steps=10)
    assert isinstance(action, CallTools)
    assert [pending.number for pending in action.calls] == [2, 3]
    assert all(pending.interrupted is None for pending in action.calls)


def test_only_calls_without_a_result_are_left_and_those_begun_are_marked() -> None:
    begun = called(3, None)
    action = next_action([asked(1, TWO_CALLS), called(2, "ok"), begun], max_steps=10)
    assert isinstance(action, CallTools)
    assert [(pending.number, pending.interrupted) for pending in action.calls] == [(3, begun)]


def test_when_all_calls_have_results_the_model_is_asked_again() -> None:
    journal = [asked(1, TWO_CALLS), called(2, "ok"), called(3, "ok")]
    assert next_action(journal, max_steps=10) == RequestModel(number=4)


def test_a_task_that_uses_up_its_steps_fails_with_the_limit() -> None:
    action = next_action([asked(1, TWO_CALLS), called(2, "ok"), called(3, "ok")], max_steps=3)
    assert isinstance(action, Fail)
    assert action.failure.code == "step_limit"
    assert "wants step 4 and may have 3" in action.failure.message


def test_an_answer_that_asks_for_more_calls_than_are_left_fails_before_any_of_them_runs() -> None:
    action = next_action([asked(1, TWO_CALLS)], max_steps=2)
    assert isinstance(action, Fail)
    assert action.failure.code == "step_limit"


def test_an_answer_without_calls_completes_the_task() -> None:
    action = next_action([asked(1, Answer(text="[ANALYSIS]hm\n[FINAL]Done"))], max_steps=10)
    assert isinstance(action, Complete)
    assert action.response.final == "Done"


def test_an_answer_that_asks_for_more_or_was_cut_by_length_is_continued() -> None:
    assert isinstance(next_action([asked(1, Answer(text="part\n[CONTINUE]"))], max_steps=10), Continue)
    assert isinstance(next_action([asked(1, Answer(text="part", finish="length"))], max_steps=10), Continue)


def test_a_failed_request_fails_the_task_with_its_reason() -> None:
    failure = Failure(code="model_refused", message="no")
    step = StepRecord(session_id="s", task_id="t", number=1, kind=StepKind.MODEL, state=StepState.FAILED, error=failure)
    assert next_action([step], max_steps=10) == Fail(failure=failure)


def test_the_model_is_shown_prompt_answers_and_results_in_order() -> None:
    shown = turns(TASK, [asked(1, TWO_CALLS), called(2, "two"), called(3, "three")])
    assert shown == [
        UserTurn(text="Do it"),
        AnswerTurn(answer=TWO_CALLS),
        ToolTurn(call=call(2), content="two"),
        ToolTurn(call=call(3), content="three"),
    ]


def test_a_call_that_never_got_a_result_is_shown_with_a_substitute() -> None:
    shown = turns(TASK, [asked(1, TWO_CALLS), called(2, "two")])
    assert isinstance(shown[-1], ToolTurn)
    assert shown[-1].is_error
    assert "No result" in shown[-1].content


def test_mail_counts_as_shown_with_the_answer_that_follows_the_result_with_it() -> None:
    first, second, third = asked(1, TWO_CALLS), asked(4, Answer(tool_calls=(call(5),))), asked(6, Answer(text="x"))
    journal = [first, called(2, "mail", mails=("m1", "m2")), called(3, "ok"), second, called(5, "ok"), third]
    assert mails_shown_by(journal, second) == ["m1", "m2"]
    assert mails_shown_by(journal, third) == []
    assert mails_shown_by(journal, first) == []


def test_reasoning_is_analysis_tools_are_commentary_and_only_the_last_text_is_final() -> None:
    journal = [
        asked(1, Answer(text="Let me look.", reasoning="think", tool_calls=(call(2),))),
        called(2, "x" * 1000),
        asked(3, Answer(text="Here you are.", reasoning="done")),
    ]
    ended = next_action(journal, max_steps=10)
    assert isinstance(ended, Complete)
    response = ended.response
    assert response.analysis == "think\ndone"
    assert response.commentary.startswith("Let me look.\ntool({}) → xxx")
    assert len(response.commentary) < 600
    assert response.final == "Here you are."
