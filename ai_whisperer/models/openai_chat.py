"""Models behind the chat completions of OpenAI and of all who are compatible with it, over our own client."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models import failures, prices
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.bounded_body import ENCODINGS, Meter
from ai_whisperer.models.chat_reader import ChatReader
from ai_whisperer.models.chat_request import choice_of, fields_of, messages_of, tool_fields_of
from ai_whisperer.models.compatible import COMPATIBLE, provider_address
from ai_whisperer.models.http.address import Endpoint, endpoint_of
from ai_whisperer.models.own_client import OwnClientModel, limited

_ENCODER = msgspec.json.Encoder()
_MOST_TOOLKITS = 64
_toolkits: dict[int, tuple[tuple[ToolSpec, ...], msgspec.Raw]] = {}
"""The tools of the latest requests as JSON. Many agents have the same ones, and each asks with them again and again."""


class OpenAIChatModel(OwnClientModel):
    """A model of a provider in `COMPATIBLE`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._provider = COMPATIBLE[self.prefix]
        self._priced_as = self._provider.priced_as or self.prefix

    @property
    def _listed_as(self) -> str:
        return self._priced_as

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        return self._cost("", input_tokens, output_tokens, 0)

    def _address(self) -> Endpoint:
        url, key = provider_address(self.prefix, os.environ)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": ENCODINGS}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if self.prefix == "openrouter":
            named = {"HTTP-Referer": "OPENROUTER_APP_URL", "X-Title": "OPENROUTER_APP_TITLE"}
            headers |= {header: value for header, name in named.items() if (value := os.environ.get(name, ""))}
        return endpoint_of(url, "/chat/completions", headers)

    async def _body(self, request: ModelRequest, meter: Meter) -> bytes:
        messages = []
        for message in messages_of(request, prefix=self.prefix, wants_reasoning=self._provider.wants_reasoning):
            messages.append(message)
            if len(messages) % 16 == 0:
                await meter.let_others()
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body |= {"tools": _described(request.tools), **choice_of(request.settings)}
        body |= fields_of(request.settings, max_tokens_field=self._provider.max_tokens, max_tokens=limited(request))
        try:
            return _ENCODER.encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelRefusedError(f"The request could not be made: {failures.told(str(error))}") from None

    def _reader(self, request: ModelRequest, meter: Meter) -> ChatReader:
        return ChatReader(name=self.name, prefix=self.prefix, step_id=request.step_id, meter=meter, cost=self._cost)

    def _cost(self, model: str, given: int, made: int, cached: int) -> float | None:
        """What that costs, by the name with which the model answered, or else by its own."""
        for name in (model, self.model) if model and model != self.model else (self.model,):
            cost = prices.cost_usd(self._priced_as, name, input_tokens=given, output_tokens=made, cached_tokens=cached)
            if cost is not None:
                return cost
        return None


def _described(tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
    """The tools as JSON."""
    found = _toolkits.get(id(tools))
    if found is None or found[0] is not tools:
        if len(_toolkits) >= _MOST_TOOLKITS:
            _toolkits.clear()
        found = _toolkits[id(tools)] = (tools, msgspec.Raw(_ENCODER.encode(tool_fields_of(tools))))
    return found[1]
