"""How much there is in a conversation: in bytes as it is kept and sent, and in tokens as far as that can be guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolSpec, ToolTurn, Turn, Usage, UserTurn

BYTES_FOR_A_TOKEN = 4
DEFAULT_OUTPUT_TOKENS = 4096
"""So long an answer is expected to be at most, where the agent's `max_tokens` says nothing else."""
DEFAULT_WINDOW = 128_000
"""So many tokens a model can take of which nothing is known."""
_MARGIN_TOKENS = 8_192
_MOST_BYTES_FOR_A_TOKEN = 8


def text_bytes(text: str) -> int:
    """The size of the text in UTF-8; lone surrogates, which cannot be sent, count as question marks."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def turn_bytes(turn: Turn) -> int:
    """What the turn takes in memory and on the wire, apart from its names."""
    if type(turn) is AnswerTurn:
        return answer_bytes(turn.answer)
    if type(turn) is ToolTurn:
        return text_bytes(turn.content) + len(turn.note) if turn.note else text_bytes(turn.content)
    return _words_bytes(turn) + sum(part.size for part in turn.parts) if turn.parts else _words_bytes(turn)


def shown_bytes(turn: Turn) -> int:
    """The bytes that the tokens of a turn follow from: images and files count by their tokens, not by their size."""
    if type(turn) is UserTurn and turn.parts:
        return _words_bytes(turn) + BYTES_FOR_A_TOKEN * sum(part.tokens for part in turn.parts)
    return turn_bytes(turn)


def _words_bytes(turn: Turn) -> int:
    """What the words of a turn take, without images and files."""
    if type(turn) is UserTurn:
        size = text_bytes(turn.text)
        return size + text_bytes(turn.note) + text_bytes(turn.memory) if turn.note or turn.memory else size
    return turn_bytes(turn)


def told_bytes(system: str, tools: Iterable[ToolSpec]) -> int:
    """What a request takes beside its conversation."""
    return text_bytes(system) + sum(len(msgspec.json.encode(tool)) for tool in tools)


def limit_tokens(window: int, settings: Mapping[str, Any]) -> int:
    """How long a request may be, so that its answer and what the estimate is wrong by fit into the window too."""
    return min(window * 4 // 5, most_tokens(window, settings) - min(_MARGIN_TOKENS, window // 16))


def most_tokens(window: int, settings: Mapping[str, Any]) -> int:
    """How long a request can be at most: its answer has to fit into the window too."""
    return window - min(output_tokens(settings), window // 4)


def input_tokens(system: str, tools: Iterable[ToolSpec], turns: Sequence[Turn], *, since: int = 0) -> int:
    """About how many tokens a request has: as the usage of the last answer says, and by its size from there on.

    The answers before the turn number `since` were given when the conversation was shown in another way.
    """
    new = of_parts = 0
    for number in range(len(turns) - 1, -1, -1):
        turn = turns[number]
        if number >= since and isinstance(turn, AnswerTurn) and turn.answer.usage.input_tokens:
            usage = turn.answer.usage
            return usage.input_tokens + usage.output_tokens + of_parts + new // BYTES_FOR_A_TOKEN
        new += _words_bytes(turn)
        if type(turn) is UserTurn and turn.parts:
            of_parts += sum(part.tokens for part in turn.parts)
    return of_parts + (new + told_bytes(system, tools)) // BYTES_FOR_A_TOKEN + 1


def least_tokens(size: int) -> int:
    """So many tokens a text of that many bytes has at least, whatever a provider reports."""
    return size // _MOST_BYTES_FOR_A_TOKEN


def estimated_usage(sent_tokens: int, answer: Answer) -> Usage:
    """About what a request has used, by what was sent and by the size of the answer."""
    return Usage(input_tokens=sent_tokens, output_tokens=answer_bytes(answer) // BYTES_FOR_A_TOKEN + 1)


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
