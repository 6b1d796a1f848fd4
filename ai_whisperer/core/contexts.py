"""How much there is in a conversation: in bytes as it is kept and sent, and in tokens as far as that can be guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolSpec, ToolTurn, Turn, Usage, UserTurn

_BYTES_FOR_A_TOKEN = 4
DEFAULT_OUTPUT_TOKENS = 4096
"""So long an answer is expected to be at most, where the agent's `max_tokens` says nothing else."""


def text_bytes(text: str) -> int:
    """The size of the text in UTF-8; lone surrogates, which cannot be sent, count as question marks."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def turn_bytes(turn: Turn) -> int:
    """What the turn takes in memory and on the wire, apart from its names."""
    if type(turn) is AnswerTurn:
        return answer_bytes(turn.answer)
    if type(turn) is ToolTurn:
        return text_bytes(turn.content)
    return _words_bytes(turn) + sum(part.size for part in turn.parts)


def _words_bytes(turn: Turn) -> int:
    """What the words of a turn take, without images and files."""
    if type(turn) is UserTurn:
        return text_bytes(turn.text) + text_bytes(turn.note) + text_bytes(turn.memory)
    return turn_bytes(turn)


def input_tokens(system: str, tools: Iterable[ToolSpec], turns: Sequence[Turn]) -> int:
    """About how many tokens a request has: as the usage of the last answer says, and by its size from there on."""
    new = of_parts = 0
    for turn in reversed(turns):
        if isinstance(turn, AnswerTurn) and turn.answer.usage.input_tokens:
            usage = turn.answer.usage
            return usage.input_tokens + usage.output_tokens + of_parts + new // _BYTES_FOR_A_TOKEN
        new += _words_bytes(turn)
        if type(turn) is UserTurn and turn.parts:
            of_parts += sum(part.tokens for part in turn.parts)
    told = sum(len(msgspec.json.encode(tool)) for tool in tools)
    return of_parts + (new + told + text_bytes(system)) // _BYTES_FOR_A_TOKEN + 1


def estimated_usage(system: str, tools: Iterable[ToolSpec], turns: Sequence[Turn], answer: Answer) -> Usage:
    """About what a request has used, by the size of what was sent and of the answer."""
    return Usage(
        input_tokens=input_tokens(system, tools, turns), output_tokens=answer_bytes(answer) // _BYTES_FOR_A_TOKEN + 1
    )


def output_tokens(settings: Mapping[str, Any]) -> int:
    """How many tokens the answer may have at most."""
    given = settings.get("max_tokens")
    return given if isinstance(given, int) and given > 0 else DEFAULT_OUTPUT_TOKENS


def answer_bytes(answer: Answer) -> int:
    """What the answer takes with its reasoning, its calls and what is kept for its provider."""
    size = text_bytes(answer.text) + text_bytes(answer.reasoning)
    for call in answer.tool_calls:
        size += text_bytes(call.arguments)
    return size if answer.provider is None else size + text_bytes(answer.provider)
