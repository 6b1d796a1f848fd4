"""A request in the chat completions protocol: the conversation, the tools and the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolSpec, ToolTurn, UserTurn
from ai_whisperer.models.attached import parts_of
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.chat_reader import REASONING_FIELDS
from ai_whisperer.models.kept import kept_of, thoughts_of
from ai_whisperer.models.untrusted import content_of, system_of, words_of

Message = dict[str, Any]

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logit_bias": "logit_bias",
    "stop_sequences": "stop",
    "openai_reasoning_effort": "reasoning_effort",
    "openai_user": "user",
    "openai_service_tier": "service_tier",
    "openai_prediction": "prediction",
    "openai_logprobs": "logprobs",
    "openai_top_logprobs": "top_logprobs",
    "openai_store": "store",
    "openai_text_verbosity": "verbosity",
    "openai_prompt_cache_key": "prompt_cache_key",
    "openai_prompt_cache_retention": "prompt_cache_retention",
    "openrouter_models": "models",
    "openrouter_provider": "provider",
    "openrouter_preset": "preset",
    "openrouter_transforms": "transforms",
    "openrouter_reasoning": "reasoning",
    "openrouter_usage": "usage",
}
"""The settings, as they are named for all providers, and the fields that they become."""
_EFFORTS = {True: "medium", False: "none", "max": "xhigh"}
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def fields_of(settings: Mapping[str, Any], *, max_tokens_field: str, max_tokens: int | None) -> dict[str, Any]:
    """What the settings add to a request. Those that nobody knows are left out."""
    fields = {}
    if not _SETTINGS.keys().isdisjoint(settings):
        fields = {field: settings[name] for name, field in _SETTINGS.items() if name in settings}
    thinking = settings.get("thinking")
    if thinking is not None and "reasoning_effort" not in fields and "reasoning" not in fields:
        fields["reasoning_effort"] = _EFFORTS.get(thinking, thinking) if isinstance(thinking, str | bool) else None
    if settings.get("service_tier") and "service_tier" not in fields:
        fields["service_tier"] = settings["service_tier"]
    if max_tokens is not None:
        fields[max_tokens_field] = max_tokens
    fields = {name: value for name, value in fields.items() if value is not None}
    more = settings.get("extra_body")
    return {**fields, **more} if isinstance(more, Mapping) else fields


def tool_fields_of(tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """The tools, as they are described to the model."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def choice_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Which tools the model has to use, and how many at once, as far as the settings say."""
    fields = {}
    match settings.get("tool_choice"):
        case "auto" | "none" | "required" as choice:
            fields["tool_choice"] = choice
        case [str(name)]:
            fields["tool_choice"] = {"type": "function", "function": {"name": name}}
    if isinstance(settings.get("parallel_tool_calls"), bool):
        fields["parallel_tool_calls"] = settings["parallel_tool_calls"]
    return fields


def messages_of(request: ModelRequest, *, prefix: str, wants_reasoning: bool) -> Iterator[Message]:
    """The conversation. Results stand right after the answer that asked for them, before what was said meanwhile."""
    if system := system_of(request):
        yield {"role": "system", "content": system}
    prompts: list[Message] = []
    results: list[Message] = []
    has_thought = False
    for turn in request.turns:
        match turn:
            case UserTurn():
                prompts.append({"role": "user", "content": _content(request, turn)})
            case ToolTurn():
                results.append(_result(turn))
            case AnswerTurn():
                yield from results
                yield from prompts
                results, prompts = [], []
                message = _answer(turn.answer, prefix)
                has_thought = has_thought or any(field in message for field in REASONING_FIELDS)
                if wants_reasoning and has_thought and "tool_calls" in message:
                    message.setdefault(REASONING_FIELDS[0], "")
                if len(message) > 2 or message["content"]:
                    yield message
    yield from results
    yield from prompts


def _content(request: ModelRequest, turn: UserTurn) -> str | list[Message]:
    """The words, with the images and documents that came with them."""
    words = words_of(turn)
    if not turn.parts:
        return words
    content: list[Message] = [{"type": "text", "text": words}] if words.strip() else []
    for each in parts_of(request, turn):
        if isinstance(each, str):
            content.append({"type": "text", "text": each})
        elif each.part.is_image:
            content.append({"type": "image_url", "image_url": {"url": each.url}})
        else:
            content.append({"type": "file", "file": {"filename": each.part.name, "file_data": each.url}})
    return content


def _result(turn: ToolTurn) -> Message:
    content = content_of(turn)
    if turn.is_error:  # the protocol has no mark for it
        content = msgspec.json.encode({"error": content}).decode()
    return {"role": "tool", "tool_call_id": turn.call.call_id, "content": content}


def _answer(answer: Answer, prefix: str) -> Message:
    message: Message = {"role": "assistant", "content": answer.text or None}
    if answer.tool_calls:
        message["tool_calls"] = [_call(call) for call in answer.tool_calls]
    if answer.provider is None:
        return message
    kept = kept_of(answer.provider, prefix)
    if kept is not None:
        if kept.details:
            message["reasoning_details"] = kept.details
        elif kept.field in REASONING_FIELDS and answer.reasoning:
            message[kept.field] = answer.reasoning
        return message
    for thought in thoughts_of(answer.provider, prefix):
        if thought.id in REASONING_FIELDS:
            message[thought.id] = message.get(thought.id, "") + thought.text
    return message


def _call(call: ToolCall) -> Message:
    """A call as the model made it. Arguments that are no JSON object, many servers refuse with the whole request."""
    arguments = call.arguments
    try:
        _OBJECT.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = msgspec.json.encode({"not_json": arguments}).decode()
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
