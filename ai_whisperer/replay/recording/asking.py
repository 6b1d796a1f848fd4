"""What a model is asked, as texts with digests: so that two requests can be compared, and a difference shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import AnswerTurn, ToolCall, ToolSpec, ToolTurn, Turn
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.recording.format import Asked

_DIGEST_DIGITS = 16
_MARK = re.compile(r'(</?(?:said|untrusted)\b[^>\n]*\bid=")\d+("|…)')
"""Marks around what others wrote have a number that is made of the text, with the ids in it."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
"""A moment in a text. A timer fires a little late, and how much is chance."""

_NEXT_TOOL = re.compile(r"(?<=\n})\n(?={\n)")


_CUT_ID = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{6,31}…")
"""The beginning of an id, at the end of a text that was too long."""


def digest_of(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_DIGITS]


def definition_digest(definition: AgentDefinition) -> str:
    """The digest of what an agent is."""
    return digest_of(msgspec.json.encode(definition, order="deterministic").decode())


def plain(text: str) -> str:
    """A text without what is another in each run: the numbers of marks, and moments."""
    if "<" in text:
        text = _MARK.sub(r"\1#\2", text)
    if "…" in text:
        text = _CUT_ID.sub("<id>…", text)
    return _MOMENT.sub("<moment>", text) if "-" in text else text


def told_tools(tools: tuple[ToolSpec, ...]) -> str:
    """Tools as a model is told of them, one after the other."""
    return "\n".join(_shown(msgspec.to_builtins(tool)) for tool in tools)


def each_tool(told: str) -> list[str]:
    """The tools that `told_tools` has put one after the other."""
    return _NEXT_TOOL.split(told)


def _shown(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2).decode()


def _settings_of(request: ModelRequest) -> dict[str, Any]:
    """The settings, with how long the answer may be where a budget says so."""
    limit = {} if request.max_output_tokens is None else {"max_output_tokens": request.max_output_tokens}
    return {**request.settings, **limit}


def turn_text(turn: Turn) -> str:
    """A turn as people read it. What the provider wants to see again is left out."""
    match turn:
        case AnswerTurn(answer=answer):
            reasoning = f"[reasoning]\n{answer.reasoning}\n" if answer.reasoning else ""
            return f"[answer]\n{reasoning}{answer.text}" + "".join(f"\n{_call(call)}" for call in answer.calls)
        case ToolTurn():
            failed = " failed" if turn.is_error else ""
            note = f"\n[note] {turn.note}" if turn.note else ""
            return f"[result of {turn.call.name}{failed}]\n{turn.content}{note}"
    memory = f"[memory]\n{turn.memory}\n" if turn.memory else ""
    note = f"\n[note] {turn.note}" if turn.note else ""
    parts = "".join(f"\n[file {part.name} {part.digest}]" for part in turn.parts)
    return f"[told]\n{memory}{turn.text}{parts}{note}"


def _call(call: ToolCall) -> str:
    return f"[calls {call.name}] {call.arguments}"


class Asking:
    """Makes digests of requests. What was made a digest of once is not again: a conversation only grows.

    `bodies` has all texts by their digests. `causal` writes ids as causal ones.
    """

    def __init__(self, causal: Callable[[str], str]) -> None:
        self._causal = causal
        self.bodies: dict[str, str] = {}
        self._tools: dict[int, tuple[tuple[ToolSpec, ...], str]] = {}
        self._last: dict[str, tuple[str, tuple[Turn, ...], tuple[str, ...]]] = {}

    def digests(self, request: ModelRequest, *, key: str) -> Asked:
        """What is asked, as digests."""
        turns = request.turns
        beginning = self._digest(plain(self._causal(turn_text(turns[0])))) if turns else ""
        conversation = f"{request.agent_id} {beginning}"
        after, shown, known = self._last.get(conversation, ("", (), ()))
        if shown and turns[: len(shown)] != shown:
            after, shown, known = "", (), ()
        new = tuple(self._digest(plain(self._causal(turn_text(turn)))) for turn in turns[len(shown) :])
        if not key.endswith(".summary"):
            self._last[conversation] = (key, turns, (*known, *new))
        return Asked(
            system=self._digest(plain(self._causal(request.system))),
            tools=self._told(request.tools),
            settings=self._digest(_shown(_settings_of(request))),
            turns=new,
            after=after,
            before=len(known),
        )

    def named(self, model: str) -> str:
        """The digest of the name of a model."""
        return self._digest(model) if model else ""

    def _told(self, tools: tuple[ToolSpec, ...]) -> str:
        known = self._tools.get(id(tools))
        if known is None or known[0] is not tools:
            known = self._tools[id(tools)] = (tools, self._digest(told_tools(tools)))
        return known[1]

    def _digest(self, text: str) -> str:
        digest = digest_of(text)
        self.bodies[digest] = text
        return digest


def digests_in(asked: Asked) -> tuple[str, ...]:
    """The digests of all texts of a request."""
    return (asked.system, asked.tools, asked.settings, asked.model, *asked.turns)
