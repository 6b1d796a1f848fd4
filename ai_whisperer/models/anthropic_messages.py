"""Models of Anthropic behind its messages interface, over our own client."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from ai_whisperer.core.anthropic_access import KEY, anthropic_access
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models import failures, prices
from ai_whisperer.models.anthropic_reader import AnthropicReader
from ai_whisperer.models.anthropic_request import (
    choice_of,
    fields_of,
    messages_of,
    system_blocks_of,
    tool_fields_of,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.bounded_body import ENCODINGS, Meter
from ai_whisperer.models.http.address import Endpoint, endpoint_of
from ai_whisperer.models.own_client import OwnClientModel, limited

_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_ENCODER = msgspec.json.Encoder()


class AnthropicModel(OwnClientModel):
    """A model of Anthropic; `ANTHROPIC_API_KEY` is the key, `ANTHROPIC_BASE_URL` another address."""

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        return prices.cost_usd("anthropic", self.model, input_tokens=input_tokens, output_tokens=output_tokens)

    def _address(self) -> Endpoint:
        access = anthropic_access(os.environ)
        if access is None:
            raise ModelRefusedError(f"The request could not be made: Set the `{KEY}` environment variable.")
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": ENCODINGS,
            "anthropic-version": _VERSION,
        }
        if access.key:
            headers["x-api-key"] = access.key
        elif access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        return endpoint_of(access.url or _URL, "/v1/messages", headers)

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        betas = request.settings.get("anthropic_betas")
        named = ",".join(str(each) for each in betas) if isinstance(betas, list | tuple) else ""
        return {**super()._headers(request), **({"anthropic-beta": named} if named else {})}

    async def _body(self, request: ModelRequest, meter: Meter) -> bytes:
        messages = []
        for message in messages_of(request, prefix=self.prefix):
            messages.append(message)
            if len(messages) % 16 == 0:
                await meter.let_others()
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": True}
        if system := system_blocks_of(request):
            body["system"] = system
        if request.tools:
            body |= {"tools": tool_fields_of(request.tools, request.settings), **choice_of(request.settings)}
        body |= fields_of(self.model, request.settings, max_tokens=limited(request))
        try:
            return _ENCODER.encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelRefusedError(f"The request could not be made: {failures.told(str(error))}") from None

    def _reader(self, request: ModelRequest, meter: Meter) -> AnthropicReader:
        return AnthropicReader(name=self.name, prefix=self.prefix, step_id=request.step_id, meter=meter)
