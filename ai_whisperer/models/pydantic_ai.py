"""Any provider that pydantic-ai knows, behind the `Model` protocol.

A name is `PREFIX:NAME`, with the prefixes of pydantic-ai: `openai-chat:NAME`, `anthropic:NAME` … Keys and addresses
come from the environment (`OPENAI_API_KEY`, `OPENAI_BASE_URL` …), as the provider's own client reads them.

Importing this module imports pydantic-ai, so import it only when such a model is wanted.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import exceptions as library
from pydantic_ai import messages as wire
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ai_whisperer.errors import (
    ModelCutOffError,
    ModelError,
    ModelNameError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
)
from ai_whisperer.models.base import (
    AnswerTurn,
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolTurn,
    UserTurn,
)
from ai_whisperer.records import Answer, ToolCall, Turn, Usage

_OPENAI_PREFIXES = ("openai", "openai-chat", "openai-responses")
_RESPONSE = TypeAdapter(wire.ModelResponse)
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""What the library trips over when a provider sends JSON of the wrong shape."""
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_URL_PASSWORD = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")
_FAILURES = (library.AgentRunError, library.UserError, OSError, *_UNREADABLE)


class PydanticAIModel:
    """A model of a provider, with an HTTP client of its own and without any retry.

    Raises `ModelNameError` for a prefix that is not known and for a provider that is not installed. A missing key is
    no fault of the name: the first request tells of it, as a `ModelRefusedError`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.prefix = name.partition(":")[0]
        self._model: LibraryModel | None = None
        if not knows_provider(self.prefix):
            raise ModelNameError(f"{self.prefix!r} is not a provider that is known here.")
        try:
            with suppress(library.UserError, ValueError):
                self._ready()
        except ImportError as error:
            raise ModelNameError(f"{name} needs a package that is not installed. {error}.") from error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        answering = False
        try:
            model = self._ready()
            messages = list(self._messages(request.turns))
            settings, parameters = _settings(model, request), _parameters(request)
            answering = True
            async with model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for event in stream:
                    for delta in _deltas(event):
                        yield delta
                response = stream.get()
            if _is_complete(model, response):
                for ending in self._ending(response):
                    yield ending
        except _FAILURES as error:
            # The library's error may quote the request with its key: it is told in our words, not chained.
            raise _translated(error, answering=answering) from None

    async def close(self) -> None:
        if self._model is not None:
            # The provider closes its client when the last one who entered it leaves.
            async with self._model:
                pass

    def _ready(self) -> LibraryModel:
        if self._model is None:
            self._model = infer_model(self.name, _provider)
        return self._model

    def _messages(self, turns: tuple[Turn, ...]) -> Iterator[wire.ModelMessage]:
        """Turns as messages: what lies between two answers is one request.

        In it the tool results come first, as the providers want them right after the answer that asked for them.
        """
        results: list[wire.ModelRequestPart] = []
        prompts: list[wire.ModelRequestPart] = []
        for turn in turns:
            match turn:
                case UserTurn():
                    prompts.append(wire.UserPromptPart(turn.text))
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
        """The answer as the provider gave it if it was this provider's, else its text and its calls."""
        if answer.provider is not None:
            try:
                kept = _RESPONSE.validate_json(answer.provider)
            except ValidationError:
                pass  # written by another kind of model or another version: the text and the calls remain
            else:
                calls = [call.tool_call_id for call in kept.tool_calls]
                same_calls = calls == [call.call_id for call in answer.tool_calls]
                if kept.parts and same_calls and (kept.metadata or {}).get("prefix") == self.prefix:
                    return kept
        text = [wire.TextPart(answer.text)] if answer.text else []
        return wire.ModelResponse(
            [*text, *(wire.ToolCallPart(call.name, call.arguments, call.call_id) for call in answer.tool_calls)]
        )

    def _ending(self, response: wire.ModelResponse) -> Iterator[StreamEvent]:
        refusal = (response.provider_details or {}).get("refusal")
        if isinstance(refusal, str) and not response.parts:
            yield TextDelta(text=refusal)
        # Only now, since the arguments of parallel calls may come interleaved.
        for call in response.tool_calls:
            arguments = call.args if isinstance(call.args, str) else call.args_as_json_str()
            yield CallRequested(
                call=ToolCall(call_id=call.tool_call_id, name=call.tool_name, arguments=arguments or "{}")
            )
        has_userinfo = "@" in urlsplit(response.provider_url or "").netloc
        kept = replace(
            response,
            metadata={"prefix": self.prefix},
            provider_url=None if has_userinfo else response.provider_url,
        )
        yield Finished(
            usage=_usage(response),
            # A reason that the library has no word for is still one that the provider gave.
            finish=response.finish_reason or ("tool_call" if response.tool_calls else "stop"),
            model=response.model_name or self.name,
            provider=_RESPONSE.dump_json(kept, exclude={"usage"}, exclude_none=True).decode(),
        )


def knows_provider(prefix: str) -> bool:
    """Whether pydantic-ai has a provider of that prefix, installed or not."""
    try:
        infer_provider_class(prefix)
    except ImportError:
        return True
    except ValueError:
        return False
    return True


def _provider(prefix: str) -> Provider[Any]:
    if prefix in _OPENAI_PREFIXES and os.environ.get("OPENAI_BASE_URL") and not os.environ.get("OPENAI_API_KEY"):
        # A local server wants no key, but the client does not start without one.
        return OpenAIProvider(api_key="no-key-needed")
    return infer_provider(prefix)


def _settings(model: LibraryModel, request: ModelRequest) -> ModelSettings:
    """The request's settings with the idempotency key, and with the retries of the provider's client off."""
    settings = dict(request.settings)
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
        instruction_parts=[wire.InstructionPart(request.system)] if request.system else None,
    )


def _tool_return(turn: ToolTurn) -> wire.ToolReturnPart:
    """`failed` goes to the provider's own mark of an error, or wraps the content as `{"error": …}` without one."""
    return wire.ToolReturnPart(
        turn.call.name, turn.content, turn.call.call_id, outcome="failed" if turn.is_error else "success"
    )


def _deltas(event: wire.ModelResponseStreamEvent) -> Iterator[StreamEvent]:
    match event:
        case wire.PartStartEvent(part=wire.TextPart(content=str(text))) if text:
            yield TextDelta(text=text)
        case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=str(text))) if text:
            yield TextDelta(text=text)
        case wire.PartStartEvent(part=wire.ThinkingPart(content=str(text))) if text:
            yield ReasoningDelta(text=text)
        case wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=str(text))) if text:
            yield ReasoningDelta(text=text)


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
    except (*_UNREADABLE, ArithmeticError, AssertionError):
        return None  # the price list does not know the model
    return float(cost)


def _translated(error: Exception, *, answering: bool) -> ModelError:
    told = _told(error)
    match error:
        case library.ModelQuotaExceededError():
            return ModelRefusedError(f"The provider's quota is used up: {told} Top up the account or change the model.")
        case library.ModelContextWindowExceededError():
            return ModelRefusedError(
                f"The conversation is too long for the model: {told} Shorten it or split the task."
            )
        case library.ModelHTTPError():
            return _status_error(error, told)
        case library.ModelRateLimitError():
            return ModelRateLimitError(told, retry_after_seconds=error.retry_after)
        case library.ModelTimeoutError() | library.ModelRequestTimeout() | TimeoutError():
            return ModelTimeoutError(f"The provider did not answer in time: {told}")
        case library.ModelConnectionError() if _broke_off(error):
            return ModelCutOffError(f"The connection broke off before the answer was complete: {told}")
        case library.ModelConnectionError() | OSError():
            return ModelServerError(f"The provider could not be reached: {told} Check its address and that it runs.")
        case library.AgentRunError():
            return ModelServerError(f"The provider's answer cannot be used: {told}")
    if answering and isinstance(error, _UNREADABLE):
        return ModelServerError(f"The provider's answer cannot be read: {told}")
    return ModelRefusedError(f"The request could not be made: {told}")


def _status_error(error: library.ModelHTTPError, told: str) -> ModelError:
    status, wait = error.status_code, _retry_after_seconds(error)
    if status == 429:
        return ModelRateLimitError(f"The provider asks for fewer requests: {told}", retry_after_seconds=wait)
    if status == 408:
        return ModelTimeoutError(f"The provider gave up waiting: {told}", retry_after_seconds=wait)
    if status == 409 or status >= 500:
        return ModelServerError(f"The provider failed (status {status}): {told}", retry_after_seconds=wait)
    if status in (401, 403):
        return ModelRefusedError(f"The provider refused the key (status {status}): {told} Check the key.")
    if status == 404:
        return ModelRefusedError(f"The provider knows no such model: {told} Check its name and the address.")
    return ModelRefusedError(f"The provider refused the request (status {status}): {told} Correct it or the settings.")


def _retry_after_seconds(error: library.ModelHTTPError) -> float | None:
    if error.retry_after is not None:
        return error.retry_after
    # The library reads whole seconds and dates; some providers send fractions.
    fraction = re.fullmatch(r"\s*(\d*\.\d+)\s*", (error.headers or {}).get("retry-after", ""))
    return float(fraction[1]) if fraction else None


def _broke_off(error: BaseException) -> bool:
    """Whether the peer went away in the middle, as against never having been there or talking nonsense."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ == "ReadError" or "peer closed connection" in str(cause):
            return True
        cause = cause.__cause__
    return False


def _told(error: Exception) -> str:
    """What the provider or the library said, as a sentence without any secret."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        body = inner.get("message") if isinstance(inner, Mapping) else inner
    root: BaseException = error
    while isinstance(error, library.ModelConnectionError) and root.__cause__ is not None:
        root = root.__cause__
    text = str(body or "") or str(root) or type(root).__name__
    # The library's advice names its own classes, which the reader does not have before them.
    text = re.sub(r" or pass it via `[^`]*`|\s*To try Pydantic AI .*", "", text, flags=re.DOTALL)
    text = " ".join(_without_secrets(text)[:500].split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _without_secrets(text: str) -> str:
    """Providers quote keys in their complaints; any that the environment holds is blotted out."""
    for name, value in os.environ.items():
        secrets = [value.strip()] if name.endswith(_SECRET_NAMES) else _URL_PASSWORD.findall(value)
        for secret in secrets:
            if len(secret) >= 8:
                text = text.replace(secret, "***")
    return text
