"""A request in Anthropic's messages protocol: the conversation, the tools and the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolSpec, ToolTurn, UserTurn
from ai_whisperer.models.attached import Sent, parts_of
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.kept import kept_of, thoughts_of
from ai_whisperer.models.untrusted import content_of, system_of, words_of

Block = dict[str, Any]

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop_sequences": "stop_sequences",
    "anthropic_thinking": "thinking",
    "anthropic_metadata": "metadata",
    "anthropic_service_tier": "service_tier",
    "anthropic_context_management": "context_management",
    "anthropic_container": "container",
}
"""The settings, as they are named for all providers, and the fields that they become."""
_NOT_WITH_THINKING = ("temperature", "top_k")
_ADAPTIVE = re.compile(r"claude-(opus|sonnet)-(4-[6-9]|[5-9])|claude-haiku-[5-9]")
"""The models that decide by themselves how much they think."""
_BUDGETS = {True: 10_000, "minimal": 1_024, "low": 2_048, "medium": 10_000, "high": 16_384, "xhigh": 32_768}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max"}
_OLD = re.compile(r"claude-(3-(opus|sonnet|haiku)|2|instant)")
_TOKENS, _OLD_TOKENS, _TOKENS_BESIDE_THINKING = 16_384, 4_096, 4_096
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def fields_of(model: str, settings: Mapping[str, Any], *, max_tokens: int | None) -> dict[str, Any]:
    """What the settings add to a request; the longest answer is always among it. Unknown settings are left out."""
    fields = {field: settings[name] for name, field in _SETTINGS.items() if settings.get(name) is not None}
    fields |= _thinking(model, settings)
    thinking = fields.get("thinking")
    kind, budget = (thinking.get("type"), thinking.get("budget_tokens")) if isinstance(thinking, Mapping) else ("", 0)
    if kind in ("enabled", "adaptive"):
        fields = {name: value for name, value in fields.items() if name not in _NOT_WITH_THINKING}
    least = budget + _TOKENS_BESIDE_THINKING if isinstance(budget, int) and kind == "enabled" else 0
    usual = max(_OLD_TOKENS if _OLD.match(model) else _TOKENS, least)
    fields["max_tokens"] = usual if max_tokens is None else max_tokens
    if settings.get("anthropic_effort") is not None:
        fields["output_config"] = {"effort": settings["anthropic_effort"]}
    if cache := _cache(settings.get("anthropic_cache")):
        fields["cache_control"] = cache
    more = settings.get("extra_body")
    return {**fields, **more} if isinstance(more, Mapping) else fields


def _thinking(model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `thinking`, which all providers have, becomes here."""
    wanted = settings.get("thinking")
    if wanted is None or settings.get("anthropic_thinking") is not None or not isinstance(wanted, bool | str):
        return {}
    if wanted is False:
        return {"thinking": {"type": "disabled"}}
    if _ADAPTIVE.match(model):
        effort = _EFFORTS.get(wanted) if isinstance(wanted, str) else None
        return {"thinking": {"type": "adaptive"}, **({"output_config": {"effort": effort}} if effort else {})}
    return {"thinking": {"type": "enabled", "budget_tokens": _BUDGETS.get(wanted, _BUDGETS["xhigh"])}}


def system_blocks_of(request: ModelRequest) -> list[Block]:
    """The system prompt."""
    system = system_of(request)
    if not system.strip():
        return []
    setting = request.settings.get("anthropic_cache_instructions", _caches_by_itself(request))
    return [_cached({"type": "text", "text": system}, setting)]


def tool_fields_of(tools: tuple[ToolSpec, ...], settings: Mapping[str, Any]) -> list[Block]:
    """The tools, as they are described to the model."""
    fields = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)} for tool in tools
    ]
    if fields:
        _cached(fields[-1], settings.get("anthropic_cache_tool_definitions"))
    return fields


def choice_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Which tools the model has to use, and how many at once, as far as the settings say."""
    choice: Block = {}
    match settings.get("tool_choice"):
        case "auto" | "none" as named:
            choice = {"type": named}
        case "required":
            choice = {"type": "any"}
        case [str(name)]:
            choice = {"type": "tool", "name": name}
    if settings.get("parallel_tool_calls") is False:
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return {"tool_choice": choice} if choice else {}


def messages_of(request: ModelRequest, *, prefix: str) -> Iterator[dict[str, Any]]:
    """The conversation: what lies between two answers is one message, the results first."""
    results: list[Block] = []
    prompts: list[Block] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                if (words := words_of(turn)).strip():  # there is no block without text
                    prompts.append({"type": "text", "text": words})
                prompts += map(_part, parts_of(request, turn)) if turn.parts else ()
            case ToolTurn():
                results.append(_result(turn))
            case AnswerTurn():
                if results or prompts:
                    yield {"role": "user", "content": [*results, *prompts]}
                results, prompts = [], []
                if blocks := _blocks(turn.answer, prefix):
                    yield {"role": "assistant", "content": blocks}
    last = [*results, *prompts]
    if last:
        _cached(last[-1], request.settings.get("anthropic_cache_messages", _caches_by_itself(request)))
        yield {"role": "user", "content": last}


def _part(sent: Sent | str) -> Block:
    """An image or a document, or what is told of one."""
    if isinstance(sent, str):
        return {"type": "text", "text": sent}
    source = {"type": "base64", "media_type": sent.part.media_type, "data": sent.base64}
    return {"type": "image" if sent.part.is_image else "document", "source": source}


def _result(turn: ToolTurn) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": _id(turn.call.call_id), "content": content_of(turn)}
    return {**block, "is_error": True} if turn.is_error else block


def _blocks(answer: Answer, prefix: str) -> list[Block]:
    """The answer as the provider gave it, with its reasoning, if it was this provider's; else its text and calls."""
    text: list[Block] = [{"type": "text", "text": answer.text}] if answer.text.strip() else []
    calls = {call.call_id: _call(call) for call in answer.tool_calls}
    if answer.provider is None:
        return [*text, *calls.values()]
    kept = kept_of(answer.provider, prefix)
    if kept is None:
        return [*_old_thoughts(answer, prefix), *text, *calls.values()]
    if {mended(str(block.get("id"))) for block in kept.blocks if block.get("type") == "tool_use"} != set(calls):
        return [*text, *calls.values()]
    blocks: list[Block] = []
    for block in kept.blocks:
        match block.get("type"):
            case "text":
                blocks += [block] if str(block.get("text", "")).strip() else [] if "text" in block else text
            case "tool_use":
                blocks.append(calls[mended(str(block.get("id")))])
            case "thinking" | "redacted_thinking":
                blocks.append(block)
    return blocks


def _old_thoughts(answer: Answer, prefix: str) -> Iterator[Block]:
    """The reasoning that the provider library has kept, with its signatures: without those it is worth nothing."""
    for thought in thoughts_of(answer.provider, prefix):
        if thought.id == "redacted_thinking":
            yield {"type": "redacted_thinking", "data": thought.signature}
        elif thought.signature:
            yield {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _call(call: ToolCall) -> Block:
    given: Any
    try:
        _OBJECT.decode(call.arguments)
        given = msgspec.Raw(call.arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        given = {"not_json": call.arguments}
    return {"type": "tool_use", "id": _id(call.call_id), "name": _NO_NAME.sub("_", call.name)[:128], "input": given}


def _id(call_id: str) -> str:
    """The id of a call that another provider may have made, in the form that this one takes."""
    return _NO_NAME.sub("_", call_id) or "_"


def _caches_by_itself(request: ModelRequest) -> bool:
    """Whether the provider is to keep what it has read though no setting says so: what an agent asks, it asks again.

    It keeps the tools and the system prompt, and the conversation up to here, which only grows. What is asked once,
    such as a summary, would cost more for nothing.
    """
    if any(name.startswith("anthropic_cache") for name in request.settings):
        return False
    return bool(request.tools) or len(request.turns) > 1


def _cached(block: Block, setting: Any) -> Block:
    """The block, marked as one up to which the provider keeps what it has read, if the setting says so."""
    if cache := _cache(setting):
        block["cache_control"] = cache
    return block


def _cache(setting: Any) -> Block | None:
    if not setting:
        return None
    return {"type": "ephemeral", **({"ttl": setting} if isinstance(setting, str) else {})}
