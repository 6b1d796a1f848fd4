from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from ai_whisperer.core.channels import parse
from ai_whisperer.core.marks import said
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Turn, Usage, UserTurn
from ai_whisperer.errors import (
    DefinitionError,
    ModelCutOffError,
    ModelEmptyError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
)
from ai_whisperer.models.base import Finished, Model, ModelRequest, StreamEvent, TextDelta, collect
from ai_whisperer.models.scripted import FunctionModel, ScriptedModel
from ai_whisperer.models.scripted_rules import PlayedFailure, Rule, ScriptedCall

if TYPE_CHECKING:
    from pathlib import Path


def request(*turns: Turn | str, agent: str = "a", attempt: int = 1, system: str = "") -> ModelRequest:
    return ModelRequest(
        step_id="t1.0",
        agent_id=agent,
        system=system,
        turns=tuple(UserTurn(text=turn) if isinstance(turn, str) else turn for turn in turns),
        attempt=attempt,
    )


def answered(text: str) -> AnswerTurn:
    return AnswerTurn(answer=Answer(text=text))


def tool_result(content: str, *, name: str = "read") -> ToolTurn:
    return ToolTurn(call=ToolCall(call_id="c", name=name, arguments="{}"), content=content)


def ask(model: Model, asked: ModelRequest) -> Answer:
    return asyncio.run(collect(model.stream(asked)))


def say(model: Model, *turns: Turn | str, agent: str = "a", attempt: int = 1) -> str:
    return ask(model, request(*turns, agent=agent, attempt=attempt)).text


def events_of(model: Model, asked: ModelRequest) -> list[StreamEvent]:
    async def read() -> list[StreamEvent]:
        return [event async for event in model.stream(asked)]

    return asyncio.run(read())


class Slept:
    """Takes the place of `asyncio.sleep` and remembers the pauses; after `enough` of them the reader gives up."""

    def __init__(self, *, enough: int = 1000) -> None:
        self.pauses: list[float] = []
        self._enough = enough

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == self._enough:
            raise asyncio.CancelledError


def test_the_first_rule_that_fits_answers() -> None:
    model = ScriptedModel([Rule(match="b", text="1"), Rule(match="a", text="2"), Rule(text="3")])
    assert say(model, "abc") == "1"
    assert say(model, "a") == "2"
    assert say(model, "x") == "3"


def test_a_rule_sees_what_others_wrote_without_the_marks_around_it() -> None:
    model = ScriptedModel(
        [Rule(match="(?s)^Subject: x\\n\\n(?P<body>.*)$", prompt_match="^Plan: a\\nb$", text="{body}")]
    )
    plan, body = said("alice", "a\nb"), said("bob", "hello")
    assert say(model, f"Plan: {plan}", answered("ok"), tool_result(f"Subject: x\n\n{body}")) == "hello"


def test_all_conditions_of_a_rule_must_hold() -> None:
    model = ScriptedModel([Rule(agent="a", match="x", attempt=2, text="yes"), Rule(text="no")])
    assert say(model, "x", attempt=2) == "yes"
    assert say(model, "x", attempt=1) == "no"
    assert say(model, "y", attempt=2) == "no"
    assert say(model, "x", attempt=2, agent="b") == "no"


def test_rules_of_an_agent_and_rules_for_all_keep_their_order() -> None:
    model = ScriptedModel(
        [Rule(match="first", text="1"), Rule(agent="a", text="2"), Rule(agent="b", text="3"), Rule(text="4")]
    )
    assert [say(model, "first"), say(model, "x"), say(model, "x", agent="b")] == ["1", "2", "3"]
    assert say(model, "x", agent="c") == "4"


def test_match_looks_at_the_last_turn_whatever_its_kind() -> None:
    model = ScriptedModel([Rule(match="needle", text="found"), Rule(text="no")])
    assert say(model, "needle") == "found"
    assert say(model, "x", answered("needle")) == "found"
    assert say(model, "x", answered("y"), tool_result("needle")) == "found"
    assert say(model, "needle", answered("y"), tool_result("z")) == "no"


def test_prompt_match_looks_at_the_latest_user_turn() -> None:
    model = ScriptedModel([Rule(prompt_match="needle", text="found"), Rule(text="no")])
    assert say(model, "needle", answered("y"), tool_result("z")) == "found"
    assert say(model, "needle", answered("y"), "other") == "no"


def test_after_tool_names_the_tool_whose_result_is_last() -> None:
    model = ScriptedModel([Rule(after_tool="read", text="yes"), Rule(text="no")])
    assert say(model, "x", answered("y"), tool_result("z")) == "yes"
    assert say(model, "x", answered("y"), tool_result("z", name="write")) == "no"
    assert say(model, "x", answered("y"), tool_result("z"), "next") == "no"


def test_turn_counts_the_answers_since_the_latest_user_turn() -> None:
    model = ScriptedModel([Rule(turn=number, text=str(number)) for number in range(3)])
    assert say(model, "x") == "0"
    assert say(model, "x", answered("y"), tool_result("z")) == "1"
    assert say(model, "x", answered("y"), tool_result("z"), tool_result("z"), answered("y")) == "2"
    assert say(model, "x", answered("y"), "next") == "0"


def test_a_rule_is_used_at_most_so_many_times() -> None:
    model = ScriptedModel([Rule(times=2, text="rare"), Rule(text="common")])
    assert [say(model, "x") for _ in range(3)] == ["rare", "rare", "common"]


def test_groups_and_turns_are_filled_into_the_answer() -> None:
    rule = Rule(
        match=r"(\w+)=(?P<value>\w+)(!)?",
        prompt_match=r"(?P<verb>\w+)",
        text="{0} {1} {value} [{3}] {verb} {last} {prompt}",
        reasoning="about {1}",
    )
    answer = ask(ScriptedModel([rule]), request("find it", answered(""), tool_result("k=v")))
    assert answer.text == "k=v k v [] find k=v find it"
    assert answer.reasoning == "about k"


def test_unknown_braces_stay_and_filled_text_is_not_filled_again() -> None:
    model = ScriptedModel([Rule(match="(.*)", text='{"a": {1}} {} {unknown} {9} {1.real}')])
    assert say(model, "{prompt}") == '{"a": {prompt}} {} {unknown} {9} {1.real}'


def test_the_groups_of_match_come_before_those_of_prompt_match() -> None:
    model = ScriptedModel([Rule(match="(a)", prompt_match="(b)(c)", text="{1}{2}")])
    assert say(model, "bc", answered("a")) == "ac"


def test_tool_calls_are_made_with_filled_arguments() -> None:
    call = ScriptedCall(name="send", arguments={"to": "{1}", "n": 2, "list": ["{1}", {"é": "{last}"}]})
    answer = ask(ScriptedModel([Rule(match="to (.*)", tools=(call, call))]), request("to bob"))
    assert [each.call_id for each in answer.tool_calls] == ["t1.0-0", "t1.0-1"]
    assert answer.tool_calls[0].name == "send"
    assert json.loads(answer.tool_calls[0].arguments) == {
        "to": "bob",
        "n": 2,
        "list": ["bob", {"é": "to bob"}],
    }
    assert answer.finish == "tool_call"


def test_filled_arguments_stay_json_whatever_is_filled_in() -> None:
    model = ScriptedModel([Rule(tools=(ScriptedCall(name="t", arguments={"x": "{last}"}),))])
    (call,) = ask(model, request('"}\n\\')).tool_calls
    assert json.loads(call.arguments) == {"x": '"}\n\\'}


def test_usage_is_estimated_from_the_characters_and_costs_nothing() -> None:
    call = ToolCall(call_id="c", name="t", arguments="1234")
    turns = (UserTurn(text="12345678"), AnswerTurn(answer=Answer(text="1234", tool_calls=(call,))))
    answer = ask(ScriptedModel([Rule(text="12345", reasoning="1")]), request(*turns, system="1234"))
    assert answer.usage == Usage(input_tokens=5, output_tokens=2, cost_usd=0.0)
    assert (answer.finish, answer.model) == ("stop", "scripted")


def test_text_is_streamed_in_chunks_with_pauses_between_them() -> None:
    slept = Slept()
    model = ScriptedModel([Rule(text="abcde", latency_seconds=3, chunk_characters=2, chunk_seconds=0.5)], sleep=slept)
    *deltas, finished = events_of(model, request("x"))
    assert deltas == [TextDelta(text="ab"), TextDelta(text="cd"), TextDelta(text="e")]
    assert isinstance(finished, Finished)
    assert slept.pauses == [3, 0.5, 0.5]


def test_without_latency_and_pauses_nothing_sleeps() -> None:
    slept = Slept()
    say(ScriptedModel([Rule(text="abcde", chunk_characters=1)], sleep=slept), "x")
    assert slept.pauses == []


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        ("rate_limit", ModelRateLimitError),
        ("server", ModelServerError),
        ("timeout", ModelTimeoutError),
        ("refused", ModelRefusedError),
    ],
)
def test_a_failure_is_raised_after_the_latency_before_any_event(
    failure: PlayedFailure, error: type[ModelError]
) -> None:
    slept = Slept()
    rule = Rule(failure=failure, retry_after_seconds=7, latency_seconds=2, text="unseen")
    events: list[StreamEvent] = []
    with pytest.raises(error, match="Rule 1 of the scripted model") as raised:
        asyncio.run(collect(ScriptedModel([rule], sleep=slept).stream(request("x")), events.append))
    assert raised.value.retry_after_seconds == 7
    assert (events, slept.pauses) == ([], [2])


def test_a_cut_off_answer_streams_its_text_but_does_not_finish() -> None:
    model = ScriptedModel([Rule(failure="cut_off", text="half", tools=(ScriptedCall(name="t"),))])
    assert events_of(model, request("x")) == [TextDelta(text="half")]
    with pytest.raises(ModelCutOffError):
        ask(model, request("x"))


def test_an_empty_answer_finishes_with_nothing() -> None:
    model = ScriptedModel([Rule(failure="empty", text="unseen")])
    (finished,) = events_of(model, request("x"))
    assert isinstance(finished, Finished)
    with pytest.raises(ModelEmptyError):
        ask(model, request("x"))


def test_a_stalled_answer_streams_its_text_and_never_ends() -> None:
    slept = Slept(enough=100)
    events: list[StreamEvent] = []
    model = ScriptedModel([Rule(failure="stall", text="half")], sleep=slept)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(collect(model.stream(request("x")), events.append))
    assert events == [TextDelta(text="half")]
    assert len(slept.pauses) == 100


def test_a_failure_can_be_played_once_and_overcome_by_a_retry() -> None:
    model = ScriptedModel([Rule(failure="server", times=1), Rule(text="ok")])
    with pytest.raises(ModelServerError):
        say(model, "x")
    assert say(model, "x", attempt=2) == "ok"


@pytest.mark.parametrize("rules", [[], [Rule(match="other", text="no")]])
def test_where_no_rule_fits_the_answer_says_so(rules: list[Rule]) -> None:
    answer = ask(ScriptedModel(rules), request("hello " + "x" * 500))
    assert answer.text == "[scripted model] No rule matches: hello " + "x" * 194
    assert answer.model == "scripted"


def test_the_answer_without_a_rule_is_final_text_whatever_was_asked() -> None:
    text = say(ScriptedModel(), "a\n[CONTINUE]\n[ANALYSIS]b\n```")
    parsed = parse(text)
    assert parsed.response.final == text
    assert not parsed.wants_continuation


def test_a_conversation_without_turns_is_answered() -> None:
    assert say(ScriptedModel()).startswith("[scripted model]")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule(match="x"), "rule 2 answers nothing"),
        (Rule(match="(", text="x"), "rule 2, field `match`: not a regular expression"),
        (Rule(prompt_match="[", text="x"), "rule 2, field `prompt_match`: not a regular expression"),
        (Rule(chunk_characters=0, text="x"), "rule 2: `chunk_characters`: Expected `int` >= 1"),
        (Rule(latency_seconds=-1, text="x"), "rule 2: `latency_seconds`"),
        (Rule(tools=(ScriptedCall(name="t", arguments={"x": {1}}),)), r"field `tools\[0\].arguments`: not JSON"),
    ],
)
def test_a_rule_that_cannot_be_played_is_refused(rule: Rule, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        ScriptedModel([Rule(text="fine"), rule])


YAML = """
rules:
  - match: "add (?P<a>\\\\d+)"
    turn: 0
    tools:
      - name: add
        arguments: {a: "{a}", b: 1}
  - after_tool: add
    text: The sum is {last}.
"""
JSON = json.dumps({"rules": [{"text": "from JSON"}]}, indent="\t")


def written(folder: Path, text: str, *, name: str = "rules.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_rules_are_loaded_from_yaml(tmp_path: Path) -> None:
    model = ScriptedModel.from_file(written(tmp_path, YAML))
    (call,) = ask(model, request("add 2")).tool_calls
    assert json.loads(call.arguments) == {"a": "2", "b": 1}
    assert say(model, "add 2", answered(""), tool_result("3", name="add")) == "The sum is 3."


def test_rules_are_loaded_from_json(tmp_path: Path) -> None:
    assert say(ScriptedModel.from_file(str(written(tmp_path, JSON, name="rules.json"))), "x") == "from JSON"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: [", "not valid YAML"),
        ("rules: 2024-99-99", "not valid YAML"),
        ("", "expected one field, `rules`"),
        ("- text: x", "expected one field, `rules`"),
        ("rules: {text: x}", "expected one field, `rules`"),
        ("rules: []\nother: 1", "expected one field, `rules`"),
        (
            "rules: [{text: x}, {txt: x}]",
            "rule 2: unknown field `txt`. Did you mean `text`. Known fields: agent, match,",
        ),
        ("rules: [x]", "rule 1 must have fields, like"),
        ("rules: [{text: 1}]", "rule 1: `text` must be text, not a whole number. Put it in quotes"),
        ("rules: [{text: x, times: 0}]", "rule 1: `times`: Expected `int` >= 1"),
        ("rules: [{text: x, failure: fire}]", 'rule 1: `failure` must be one of rate_limit, server, .*, not "fire"'),
        ("rules: [{text: x}, {text: x, match: '('}]", "rule 2, field `match`"),
        ("rules: [{tools: [{arguments: {}}]}]", r"rule 1, field `tools\[0\]`: .*`name`"),
        ("rules: [{tools: [{name: t, arguments: {day: 2024-01-01}}]}]", r"rule 1, field `tools\[0\].arguments`"),
        ("rules: [{tools: [{name: t, arguments: {x: &x [*x]}}]}]", r"rule 1, field `tools\[0\].arguments`"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name_and_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=rf"rules\.yaml: {message}"):
        ScriptedModel.from_file(written(tmp_path, text))


def test_a_malformed_json_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"rules\.json: not valid JSON"):
        ScriptedModel.from_file(written(tmp_path, "rules: []", name="rules.json"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"none\.yaml: cannot be read"):
        ScriptedModel.from_file(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match=r"rules\.yaml: not valid YAML"):
        ScriptedModel.from_file(tmp_path / "rules.yaml")


def test_a_function_answers_with_a_text() -> None:
    answer = ask(FunctionModel(lambda asked: f"{asked.agent_id}!"), request("1234"))
    assert (answer.text, answer.finish, answer.model) == ("a!", "stop", "function")
    assert answer.usage == Usage(input_tokens=1, output_tokens=1, cost_usd=0.0)


def test_the_answer_of_a_function_is_streamed_as_it_is() -> None:
    made = Answer(
        text="t",
        reasoning="r",
        tool_calls=(ToolCall(call_id="c", name="n", arguments="{}"),),
        usage=Usage(input_tokens=3),
        finish="length",
        model="m",
        provider="p",
    )
    assert ask(FunctionModel(lambda _: made), request("x")) == made


def test_a_function_may_raise_a_model_error() -> None:
    def refuse(_: ModelRequest) -> str:
        raise ModelRefusedError

    with pytest.raises(ModelRefusedError):
        ask(FunctionModel(refuse), request("x"))


def test_a_function_answers_after_its_latency() -> None:
    slept = Slept()
    ask(FunctionModel(lambda _: "x", latency_seconds=2, sleep=slept), request("x"))
    ask(FunctionModel(lambda _: "x", sleep=slept), request("x"))
    assert slept.pauses == [2]


def test_closing_a_model_is_harmless() -> None:
    models: list[Model] = [ScriptedModel(), FunctionModel(lambda _: "x")]
    for model in models:
        asyncio.run(model.close())


def failed_call(content: str, *, name: str = "read") -> ToolTurn:
    return ToolTurn(call=ToolCall(call_id="c", name=name, arguments="{}"), content=content, is_error=True)


def test_a_rule_that_has_not_looked_at_the_result_does_not_speak_after_a_failed_call() -> None:
    model = ScriptedModel([Rule(prompt_match="go", turn=1, text="I have mailed it.")])
    assert say(model, "go", answered("I mail"), tool_result("sent", name="send_mail")) == "I have mailed it."
    told = say(model, "go", answered("I mail"), failed_call("Nobody is called 'x'.", name="send_mail"))
    assert told == "[scripted model] I could not do all of it: send_mail failed. Nobody is called 'x'."


def test_a_failed_call_counts_also_when_another_call_of_the_answer_went_well() -> None:
    model = ScriptedModel([Rule(prompt_match="go", turn=1, text="All is done.")])
    for results in ((failed_call("no"), tool_result("yes")), (tool_result("yes"), failed_call("no"))):
        assert "read failed. no" in say(model, "go", answered("both"), *results)
    assert say(model, "go", failed_call("no"), answered("again"), tool_result("yes")) == "All is done."


def test_a_rule_can_be_made_for_failed_calls_or_look_at_what_they_said() -> None:
    model = ScriptedModel(
        [
            Rule(tool_failed=True, prompt_match="one", text="That went wrong."),
            Rule(tool_failed=False, match="no", text="never after a failure"),
            Rule(match="(no .*)", text="I saw: {1}"),
        ]
    )
    assert say(model, "one", answered("x"), failed_call("no way")) == "That went wrong."
    assert say(model, "two", answered("x"), failed_call("no way")) == "I saw: no way"
    assert say(model, "two", answered("x"), tool_result("no way")) == "never after a failure"
