"""Any provider that pydantic-ai knows, behind the `Model` protocol.

A name is `PREFIX:NAME`, with the prefixes of pydantic-ai: `openai-chat:NAME`, `anthropic:NAME` … Keys and addresses
come from the environment (`OPENAI_API_KEY`, `OPENAI_BASE_URL` …), as the provider's own client reads them.

Importing this module imports pydantic-ai, so import it only when such a model is wanted.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import messages as wire
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage
from pydantic_core import PydanticSerializationError

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Usage, UserTurn
from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import ModelNameError
from ai_whisperer.models import prices
from ai_whisperer.models.accounts import account_at
from ai_whisperer.models.attached import parts_of
from ai_whisperer.models.base import (
    CallDelta,
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from ai_whisperer.models.bounded_body import Meter
from ai_whisperer.models.bounded_http import bound, current_meter
from ai_whisperer.models.calls import is_cut
from ai_whisperer.models.detection import OLLAMA, PROVIDERS
from ai_whisperer.models.local_servers import LOCAL_SERVERS, local_address, ollama_url
from ai_whisperer.models.provider_errors import FAILURES, UNREADABLE, translated
from ai_whisperer.models.untrusted import content_of, system_of, words_of

_OPENAI_PREFIXES = ("openai", "openai-chat", "openai-responses")
_NO_KEY = "no-key-needed"
_RESPONSE = TypeAdapter(wire.ModelResponse)


class _SharedModels:
    """The library's models of one event loop. An HTTP client takes 25 ms and 800 KB to make: not one for each agent."""

    def __init__(self) -> None:
        self._models: dict[str, LibraryModel] = {}
        self._users: dict[str, int] = {}

    def take(self, name: str) -> LibraryModel:
        if name not in self._models:
            prefix, _, model = name.partition(":")
            is_local = prefix in LOCAL_SERVERS
            self._models[name] = (
                OpenAIChatModel(model, provider=_provider(prefix)) if is_local else infer_model(name, _provider)
            )
        self._users[name] = self._users.get(name, 0) + 1
        return self._models[name]

    async def give_back(self, name: str) -> None:
        self._users[name] -= 1
        if self._users[name] == 0:
            model = self._models.pop(name)
            async with model:
                pass  # the provider closes its HTTP client when the last one who entered it leaves


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedModels] = WeakKeyDictionary()


class PydanticAIModel:
    """A model of a provider, without any retry. Those of one name share the connections to the provider.

    Raises `ModelNameError` for a prefix that is not known and for a provider that is not installed. A missing key is
    no fault of the name: the first request tells of it, as a `ModelRefusedError`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.prefix = name.partition(":")[0]
        self._model: LibraryModel | None = None
        try:
            infer_provider_class("openai-chat" if self.prefix in LOCAL_SERVERS else self.prefix)
        except ValueError as error:
            raise ModelNameError(f"{self.prefix!r} is not a provider that is known here.") from error
        except ImportError as error:
            install = next((each.install for each in PROVIDERS if each.prefix == self.prefix and each.extra), None)
            what = f"{error}." if install is None else f"Install it: {install}"
            raise ModelNameError(f"{name} needs a package that is not installed. {what}") from error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        answering = False
        meter = Meter()
        try:
            model = self._ready()
            messages = []
            for message in self._messages(request):
                messages.append(message)
                await meter.let_others()
            settings, parameters = _settings(model, request), _parameters(request)
            answering = True
            opening = model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            )
            async with _metered(opening, meter) as stream:
                async for event in stream:
                    delta = _delta_of(event)
                    if delta is not None:
                        meter.content += len(delta.arguments if isinstance(delta, CallDelta) else delta.text)
                        yield delta
                response = stream.get()
            await meter.let_others()
            if _is_complete(model, response):
                for ending in self._ending(response):
                    yield ending
                    await meter.let_others()
        except FAILURES as error:
            # The library's error may quote the request with its key: it is told in our words, not chained.
            raise translated(error, answering=answering, came=meter.received > 0) from None

    @property
    def account(self) -> Account | None:
        """Through which account it asks; None if it cannot be asked, which the request tells."""
        try:
            model = self._ready()
        except FAILURES:
            return None
        key = getattr(getattr(model.provider, "client", None), "api_key", None)
        try:
            return account_at(self.prefix, model.base_url or "", key if isinstance(key, str) and key != _NO_KEY else "")
        except ValueError:
            return None  # no address

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """What a request of that size costs; None if the price list does not know the model."""
        try:
            provider = self._ready().system
        except FAILURES:
            return None  # the request itself tells what is missing
        usage = RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens)
        name = self.name.partition(":")[2]
        return _cost_usd(wire.ModelResponse([], usage=usage, model_name=name, provider_name=provider))

    def context_window(self) -> int | None:
        """How many tokens it can take with its answer; None if the price list does not know."""
        prefix, _, name = self.name.partition(":")
        return prices.context_window(prefix, name)

    async def prepare(self) -> None:
        """Read the price list."""
        await prices.load()

    async def close(self) -> None:
        if self._model is not None:
            self._model = None
            await _shared[asyncio.get_running_loop()].give_back(self.name)

    def _ready(self) -> LibraryModel:
        if self._model is None:
            self._model = _shared.setdefault(asyncio.get_running_loop(), _SharedModels()).take(self.name)
        return self._model

    def _messages(self, request: ModelRequest) -> Iterator[wire.ModelMessage]:
        """Turns as messages: what lies between two answers is one request.

        In it the tool results come first, as the providers want them right after the answer that asked for them.
        """
        results: list[wire.ModelRequestPart] = []
        prompts: list[wire.ModelRequestPart] = []
        for turn in request.turns:
            match turn:
                case UserTurn():
                    prompts.append(wire.UserPromptPart(_content(request, turn)))
                case ToolTurn():
                    results.append(_tool_return(turn))
                case AnswerTurn():
                    if results or prompts:
                        yield wire.ModelRequest([*results, *prompts])
                        results, prompts = [], []
                    if (response := self._response(turn.answer)).parts:
                        yield response
        if results or prompts:
            yield wire.ModelRequest([*results, *prompts])

    def _response(self, answer: Answer) -> wire.ModelResponse:
        """The answer as the provider gave it if it was this provider's, else its text and its calls.

        The calls are those of the answer in any case: they may have been read in another way than they were written.
        """
        if answer.provider is not None:
            try:
                kept = _RESPONSE.validate_json(answer.provider)
            except ValidationError:
                pass  # written by another kind of model or another version: the text and the calls remain
            else:
                calls = [call.tool_call_id for call in kept.tool_calls]
                same_calls = calls == [call.call_id for call in answer.tool_calls]
                if kept.parts and same_calls and (kept.metadata or {}).get("prefix") == self.prefix:
                    return replace(kept, parts=[*_with_calls(kept.parts, answer.tool_calls)])
        text = [wire.TextPart(answer.text)] if answer.text else []
        return wire.ModelResponse(
            [*text, *(wire.ToolCallPart(call.name, call.arguments, call.call_id) for call in answer.tool_calls)]
        )

    def _ending(self, response: wire.ModelResponse) -> Iterator[StreamEvent]:
        response = _without_cut_call(response)
        refusal = (response.provider_details or {}).get("refusal")
        if isinstance(refusal, str) and not response.parts:
            yield TextDelta(text=refusal)
        # Only now, since the arguments of parallel calls may come interleaved.
        for call in response.tool_calls:
            # The library passes on what it got, be it text or not.
            name, arguments = str(call.tool_name), _arguments_of(call)
            yield CallRequested(call=ToolCall(call_id=str(call.tool_call_id), name=name, arguments=arguments))
        has_userinfo = "@" in urlsplit(response.provider_url or "").netloc
        kept = replace(
            response,
            metadata={"prefix": self.prefix},
            provider_url=None if has_userinfo else response.provider_url,
        )
        yield Finished(
            usage=_usage(response),
            # A reason that the library has no word for is still one that the provider gave.
            finish=str(response.finish_reason or ("tool_call" if response.tool_calls else "stop")),
            model=str(response.model_name or self.name),
            provider=_dumped(kept),
        )


def _without_cut_call(response: wire.ModelResponse) -> wire.ModelResponse:
    last = response.parts[-1] if response.parts else None
    if not isinstance(last, wire.ToolCallPart) or isinstance(last.args, Mapping):
        return response
    is_whole = not is_cut(last.args or "", finish=str(response.finish_reason))
    return response if is_whole else replace(response, parts=response.parts[:-1])


def _with_calls(parts: Iterable[wire.ModelResponsePart], calls: Iterable[ToolCall]) -> Iterator[wire.ModelResponsePart]:
    """The parts; those that are calls have the names and arguments of these, one for each of them."""
    left = iter(calls)
    for part in parts:
        if not isinstance(part, wire.ToolCallPart):
            yield part
            continue
        call = next(left)
        if (part.tool_name, _arguments_of(part)) == (call.name, call.arguments):
            yield part
        else:
            yield wire.ToolCallPart(
                call.name,
                call.arguments,
                part.tool_call_id,
                id=part.id,
                provider_name=part.provider_name,
                provider_details=part.provider_details,
            )


def _arguments_of(part: wire.ToolCallPart) -> str:
    return (part.args if isinstance(part.args, str) else part.args_as_json_str()) or "{}"


def _provider(prefix: str) -> Provider[Any]:
    provider = _unbounded_provider(prefix)
    # The one place where all providers have the client that they made; those that speak no HTTP have none.
    client = provider._own_http_client  # noqa: SLF001
    if client is not None:
        bound(client)
    return provider


def _unbounded_provider(prefix: str) -> Provider[Any]:
    if prefix in _OPENAI_PREFIXES and os.environ.get("OPENAI_BASE_URL") and not os.environ.get("OPENAI_API_KEY"):
        # A local server wants no key, but the client does not start without one.
        return OpenAIProvider(api_key=_NO_KEY)
    if prefix in LOCAL_SERVERS:
        url, key = local_address(prefix, os.environ)
        return OpenAIProvider(base_url=url, api_key=key or _NO_KEY)
    if prefix == OLLAMA.prefix:
        return OllamaProvider(base_url=ollama_url(os.environ))
    return infer_provider(prefix)


def _settings(model: LibraryModel, request: ModelRequest) -> ModelSettings:
    """The request's settings with the idempotency key, and with the retries of the provider's client off."""
    settings = dict(request.settings)
    if request.max_output_tokens is not None:
        given = settings.get("max_tokens")
        room = request.max_output_tokens
        settings["max_tokens"] = min(given, room) if isinstance(given, int) else room
    headers = settings.get("extra_headers") or {}
    ours = {"max_retries": 0, "extra_headers": {**headers, "Idempotency-Key": request.step_id}}
    # A few providers have no such setting (Bedrock, Mistral …); asking for it would only bring a warning.
    settings.update((name, value) for name, value in ours.items() if name not in model.unsupported_settings)
    return cast(ModelSettings, settings)


def _parameters(request: ModelRequest) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in request.tools
        ],
        instruction_parts=[wire.InstructionPart(system)] if (system := system_of(request)) else None,
    )


def _content(request: ModelRequest, turn: UserTurn) -> str | list[wire.UserContent]:
    """The words, with the images and documents that came with them."""
    words = words_of(turn)
    if not turn.parts:
        return words
    parts = (
        each if isinstance(each, str) else wire.BinaryContent(each.data, media_type=each.part.media_type)
        for each in parts_of(request, turn)
    )
    return [*filter(None, [words]), *parts]


def _tool_return(turn: ToolTurn) -> wire.ToolReturnPart:
    """`failed` goes to the provider's own mark of an error, or wraps the content as `{"error": …}` without one."""
    return wire.ToolReturnPart(
        turn.call.name, content_of(turn), turn.call.call_id, outcome="failed" if turn.is_error else "success"
    )


@asynccontextmanager
async def _metered(
    opening: AbstractAsyncContextManager[StreamedResponse], meter: Meter
) -> AsyncIterator[StreamedResponse]:
    """Enter the stream with this meter for its response, which arrives while it is entered."""
    async with AsyncExitStack() as stack:
        before = current_meter.set(meter)
        try:
            stream = await stack.enter_async_context(opening)
        finally:
            current_meter.reset(before)
        yield stream


def _delta_of(event: wire.ModelResponseStreamEvent) -> TextDelta | ReasoningDelta | CallDelta | None:
    match event:
        case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=str(text))) if text:
            return TextDelta(text=text)
        case wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=str(text))) if text:
            return ReasoningDelta(text=text)
        case wire.PartDeltaEvent(delta=wire.ToolCallPartDelta(args_delta=arguments)) if arguments:
            return CallDelta(arguments=_argument_text(arguments))
        case wire.PartStartEvent(part=wire.TextPart(content=str(text))) if text:
            return TextDelta(text=text)
        case wire.PartStartEvent(part=wire.ThinkingPart(content=str(text))) if text:
            return ReasoningDelta(text=text)
        case wire.PartStartEvent(part=wire.ToolCallPart() as call):
            return CallDelta(name=str(call.tool_name or "?"), arguments=_argument_text(call.args))
    return None


def _argument_text(arguments: str | Mapping[str, Any] | None) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)


def _dumped(response: wire.ModelResponse) -> str:
    """The response as it is kept."""
    try:
        return _RESPONSE.dump_json(response, exclude={"usage"}, exclude_none=True).decode()
    except PydanticSerializationError:
        # It has halves of surrogate pairs, which came in two pieces: `json` writes them as they are, then they are one.
        plain = _RESPONSE.dump_python(response, exclude={"usage"}, exclude_none=True)
        return json.dumps(_mended_value(plain), default=str)


def _mended_value(value: Any) -> Any:
    match value:
        case str():
            return mended(value)
        case Mapping():
            return {mended(str(key)): _mended_value(each) for key, each in value.items()}
        case list() | tuple():
            return [_mended_value(each) for each in value]
    return value


def _is_complete(model: LibraryModel, response: wire.ModelResponse) -> bool:
    """Whether the provider itself said why the answer ends.

    For chat completions the library reports `stop` when the provider said nothing; only what the provider said is in
    the details. A refusal is the one reason that it takes out of them.
    """
    if response.state != "complete":
        return False
    if "finish_reason" in (response.provider_details or {}) or response.finish_reason == "content_filter":
        return True
    return response.finish_reason is not None and not isinstance(model, OpenAIChatModel)


def _usage(response: wire.ModelResponse) -> Usage:
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cost_usd=_cost_usd(response),
    )


def _cost_usd(response: wire.ModelResponse) -> float | None:
    try:
        cost = response.usage.cost if response.usage.cost is not None else response.cost().total_price
    except (*UNREADABLE, ArithmeticError, AssertionError):
        return None  # the price list does not know the model
    return float(cost)
