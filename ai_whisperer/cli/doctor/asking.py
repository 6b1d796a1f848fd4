"""One request to a model, with a tool: whether it answers, how fast, and whether it can call tools."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.cli.printable import one_line
from ai_whisperer.core.call_reading import read_calls
from ai_whisperer.domain.conversation import Answer, ToolSpec, UserTurn
from ai_whisperer.errors import WhispererError
from ai_whisperer.models.base import Finished, ModelRequest, StreamEvent, collect
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.names import SCRIPTED

_ASKING_SECONDS = 60.0
_SHOWN_CHARACTERS = 80
_ADD = ToolSpec(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
_GIVEN = {"a": 17, "b": 25}
_REQUEST = ModelRequest(
    step_id="doctor",
    agent_id="doctor",
    system="You answer by calling tools.",
    turns=(UserTurn(text="Call the tool add with a = 17 and b = 25."),),
    tools=(_ADD,),
)
_ADVICE = (
    "Agents work by calling tools, so use a model that can, or a server that lets it (llama.cpp: --jinja; vLLM: "
    "--enable-auto-tool-choice). Agents with `tools: []` can use this one."
)


def ask_model(name: str) -> list[Finding]:
    """Send one small request with a tool, and tell what came of it."""
    return asyncio.run(_ask(name))


async def _ask(name: str) -> list[Finding]:
    watch = Watch()
    try:
        model = resolve(name)
        try:
            async with asyncio.timeout(_ASKING_SECONDS):
                answer = await collect(model.stream(_REQUEST), watch.see)
        finally:
            await model.close()
    except TimeoutError:
        found = f"{name} did not answer within {_ASKING_SECONDS:.0f} s"
        return [problem("Answer", found, "Check that it is reachable.")]
    except WhispererError as error:
        return [problem("Answer", f"{name} does not answer", error.message)]
    answered = ok("Answer", f"{name} answered after {watch.told(answer)}")
    if name.partition(":")[0] == SCRIPTED:
        return [answered]  # its answers are fixed
    return [answered, _about_call(answer)]


class Watch:
    """When a request was sent, when the first piece of its answer came, and when the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked = clock()
        self._first: float | None = None

    def see(self, event: StreamEvent) -> None:
        if self._first is None and not isinstance(event, Finished):
            self._first = self._clock()

    def told(self, answer: Answer) -> str:
        """How long the answer took that has just ended, in words."""
        now, used = self._clock(), answer.usage
        first = now if self._first is None else self._first
        # The first token is not part of the time that the others took.
        rate = (used.output_tokens - 1) / (now - first) if now > first else 0.0
        speed = f", {rate:,.0f} tokens a second" if rate >= 1 else ""
        tokens = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
        return f"{now - self._asked:.1f} s, the first token after {first - self._asked:.2f} s{speed}; {tokens}"


def _about_call(answer: Answer) -> Finding:
    read = read_calls(answer, {_ADD.name: _ADD}.get, step_id=_REQUEST.step_id, turns=())
    if not any(call.name == _ADD.name and _is_right(call.arguments) for call in read.calls):
        called = ", ".join(f"{call.name} {call.arguments}" for call in read.calls)
        said = one_line(called or answer.text)[:_SHOWN_CHARACTERS]
        return problem("Tool call", f"it was told to call a tool, and did not do it rightly; it wrote: {said}", _ADVICE)
    if read.read_as:
        how = "as text" if not answer.tool_calls else "with a name or arguments that had to be repaired"
        advice = "That is understood where it is clear. A server with a parser for tool calls makes it certain."
        return warning("Tool call", f"it called the tool, but wrote the call {how}", advice)
    return ok("Tool call", "it called the tool as it should")


def _is_right(arguments: str) -> bool:
    try:
        return bool(json.loads(arguments) == _GIVEN)
    except ValueError:
        return False
