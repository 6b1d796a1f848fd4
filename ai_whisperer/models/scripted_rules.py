"""The rules of the scripted model: when one fits a request, and what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from ai_whisperer.core.attachments import described
from ai_whisperer.core.fields import Place, check_fields
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Turn, Usage, UserTurn
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import (
    DefinitionError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
)
from ai_whisperer.models.base import ModelRequest

PlayedFailure = Literal["rate_limit", "server", "timeout", "refused", "cut_off", "empty", "stall"]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

_ERRORS: Mapping[str, type[ModelError]] = {
    "rate_limit": ModelRateLimitError,
    "server": ModelServerError,
    "timeout": ModelTimeoutError,
    "refused": ModelRefusedError,
}
_CHARACTERS_PER_TOKEN = 4
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class ScriptedCall(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call that a rule makes. Placeholders in its string values are filled."""

    name: str
    arguments: Mapping[str, Any] = {}


class Rule(Record, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When to answer what.

    The text of turns is looked at, and filled in, without the marks around what others wrote (`core/marks.py`).

    Conditions; those that are given must all hold:
    `agent` is the id of the asking agent; `match` is found in the text of the last turn, whatever its kind;
    `prompt_match` is found in the latest user turn; `after_tool` names the tool whose result is the last turn; `turn`
    is the number of answers since the latest user turn; `attempt` is the attempt of the request; the rule was used
    fewer than `times` times by this model; `tool_failed` says whether a call of the last answer must have failed. A
    rule that neither states it nor has a `match`, and so has not looked at what came, does not fit after a failed call:
    it would speak of what was not done.

    Effects: `reasoning`, `text` and `tools` are answered, with `output` as JSON in place of the text; the text in
    pieces of `chunk_characters` with pauses of `chunk_seconds` between them, after `latency_seconds`. `{name}` and
    `{1}` in them are the groups of `match`, else of `prompt_match`; `{last}` is the text of the last turn and
    `{prompt}` that of the latest user turn; other braces
    stay. `failure` takes the place of the answer, except that `cut_off` and `stall` stream reasoning and text first.
    """

    agent: str | None = None
    match: str | None = None
    prompt_match: str | None = None
    after_tool: str | None = None
    turn: Annotated[int, msgspec.Meta(ge=0)] | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tool_failed: bool | None = None
    text: str = ""
    output: Any = None
    reasoning: str = ""
    tools: tuple[ScriptedCall, ...] = ()
    latency_seconds: Seconds = 0.0
    chunk_characters: Annotated[int, msgspec.Meta(ge=1)] | None = None
    chunk_seconds: Seconds = 0.0
    failure: PlayedFailure | None = None
    retry_after_seconds: Seconds | None = None


class Situation(msgspec.Struct, frozen=True):
    """What the conditions of rules look at. `turn` counts the answers since the latest user turn.

    `failed` is the first call of the last answer that failed, if one did.
    """

    request: ModelRequest
    last: str
    prompt: str
    after_tool: str | None
    turn: int
    failed: ToolTurn | None


def situation_of(request: ModelRequest) -> Situation:
    turns = request.turns
    last = turns[-1] if turns else None
    prompt, answers = "", 0
    for turn in reversed(turns):
        if isinstance(turn, UserTurn):
            prompt = without_marks(_text_of(turn))
            break
        answers += isinstance(turn, AnswerTurn)
    return Situation(
        request=request,
        last=without_marks(_text_of(last)) if last is not None else "",
        prompt=prompt,
        after_tool=last.call.name if isinstance(last, ToolTurn) else None,
        turn=answers,
        failed=_failed_of(turns),
    )


def _failed_of(turns: Sequence[Turn]) -> ToolTurn | None:
    """The first failed call among the results that the conversation ends with."""
    failed: ToolTurn | None = None
    for turn in reversed(turns):
        if not isinstance(turn, ToolTurn):
            break
        failed = turn if turn.is_error else failed
    return failed


def _text_of(turn: Turn) -> str:
    if type(turn) is AnswerTurn:
        return turn.answer.text
    if type(turn) is ToolTurn:
        return turn.content
    return "\n".join([turn.text, *(f"[{described(part)}]" for part in turn.parts)]) if turn.parts else turn.text


class PlayableRule:
    """A rule that was checked, its expressions compiled, and how often it was used."""

    def __init__(self, number: int, rule: Rule) -> None:
        # A record made in Python is not checked when it is made, so it is read like one from a file.
        self.rule = rule = checked_rule(number, msgspec.structs.asdict(rule))
        self.uses = 0
        self._number = number
        self._match = _compiled(number, "match", rule.match)
        self._prompt_match = _compiled(number, "prompt_match", rule.prompt_match)
        if not (rule.text or rule.tools or rule.failure or rule.output is not None):
            raise DefinitionError(f"rule {number} answers nothing: give it `text`, `output`, `tools` or `failure`")
        if rule.text and rule.output is not None:
            raise DefinitionError(f"rule {number} has both `text` and `output`, which is a text too: leave one out")
        if rule.output is not None:
            _check_json(number, "output", rule.output)
        for index, call in enumerate(rule.tools):
            _check_json(number, f"tools[{index}].arguments", call.arguments)

    def fit(self, situation: Situation) -> tuple[re.Match[str], ...] | None:
        """What the expressions found, if the conditions hold, else None."""
        rule = self.rule
        if (
            (rule.times is not None and self.uses >= rule.times)
            or (rule.turn is not None and rule.turn != situation.turn)
            or (rule.attempt is not None and rule.attempt != situation.request.attempt)
            or (rule.after_tool is not None and rule.after_tool != situation.after_tool)
            or not self._suits_outcome(failed=situation.failed is not None)
        ):
            return None
        found = []
        for expression, text in ((self._match, situation.last), (self._prompt_match, situation.prompt)):
            if expression is not None:
                match = expression.search(text)
                if match is None:
                    return None
                found.append(match)
        return tuple(found)

    def _suits_outcome(self, *, failed: bool) -> bool:
        """Whether the rule may speak after calls of which one failed, or none."""
        if self.rule.tool_failed is not None:
            return self.rule.tool_failed is failed
        return not failed or self._match is not None

    def answer(self, situation: Situation, found: tuple[re.Match[str], ...]) -> Answer | ModelError:
        rule = self.rule
        if rule.failure == "empty":
            return answer_with(situation.request, model="scripted")
        if rule.failure is not None and rule.failure in _ERRORS:
            message = f"Rule {self._number} of the scripted model plays the failure `{rule.failure}`."
            return _ERRORS[rule.failure](message, retry_after_seconds=rule.retry_after_seconds)
        values = {"last": situation.last, "prompt": situation.prompt}
        for match in reversed(found):
            values |= {str(index): group or "" for index, group in enumerate((match[0], *match.groups()))}
            values |= {name: group or "" for name, group in match.groupdict().items()}
        calls = tuple(
            ToolCall(
                call_id=f"{situation.request.step_id}-{index}",
                name=call.name,
                arguments=_json_of(_fill(call.arguments, values)),
            )
            for index, call in enumerate(rule.tools)
        )
        return answer_with(
            situation.request,
            model="scripted",
            text=_fill(rule.text, values) if rule.output is None else _json_of(_fill(rule.output, values)),
            reasoning=_fill(rule.reasoning, values),
            tool_calls=calls,
        )


def _json_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _check_json(number: int, field: str, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _error(number, field, f"not JSON: {error}") from error


def _fill(template: Any, values: Mapping[str, str]) -> Any:
    """The template with its placeholders filled once, also in the values within it; unknown ones stay."""
    match template:
        case str() if "{" in template:
            return _PLACEHOLDER.sub(lambda place: values.get(place[1], place[0]), template)
        case dict():
            return {key: _fill(value, values) for key, value in template.items()}
        case list() | tuple():
            return [_fill(value, values) for value in template]
    return template


def answer_with(
    request: ModelRequest,
    *,
    model: str,
    text: str = "",
    reasoning: str = "",
    tool_calls: tuple[ToolCall, ...] = (),
) -> Answer:
    """An answer with its estimated usage."""
    asked = len(request.system) + sum(_length(turn) for turn in request.turns)
    answered = len(text) + len(reasoning) + sum(len(call.arguments) for call in tool_calls)
    usage = Usage(input_tokens=_tokens(asked), output_tokens=_tokens(answered), cost_usd=0.0)
    finish = "tool_call" if tool_calls else "stop"
    return Answer(text=text, reasoning=reasoning, tool_calls=tool_calls, usage=usage, finish=finish, model=model)


def _length(turn: Turn) -> int:
    length = len(_text_of(turn))
    if type(turn) is AnswerTurn:
        for call in turn.answer.tool_calls:
            length += len(call.arguments)
    return length


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)


def checked_rule(number: int, rule: object) -> Rule:
    try:
        return msgspec.convert(rule, Rule)
    except msgspec.ValidationError as error:

        def complain(_: Place, problem: str) -> NoReturn:
            raise DefinitionError(f"rule {number}: {problem.removesuffix('.')}")

        if not isinstance(rule, dict):
            raise DefinitionError(f"rule {number} must have fields, like 'text: hello'") from error
        check_fields(rule, Rule, complain=complain)
        problem, _, field = str(error).partition(" - at `$")
        raise _error(number, field.strip("`."), problem) from error


def _compiled(number: int, field: str, expression: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(expression) if expression is not None else None
    except (re.error, OverflowError, RecursionError) as error:
        raise _error(number, field, f"not a regular expression: {error}") from error


def _error(number: int, field: str, problem: str) -> DefinitionError:
    return DefinitionError(f"rule {number}, field `{field}`: {problem}" if field else f"rule {number}: {problem}")
