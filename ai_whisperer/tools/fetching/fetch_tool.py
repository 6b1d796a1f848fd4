"""The tool `fetch_url`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from ai_whisperer.core.network import grants_of
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.function import ToolContext, tool

if TYPE_CHECKING:
    from ai_whisperer.tools.fetching.fetcher import Fetched

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

_MAX_BODY_BYTES = 4 << 20
_ERROR_CHARACTERS = 2_000


def _only_reads(arguments: Mapping[str, Any]) -> bool:
    return arguments["method"] in ("GET", "HEAD")


@tool(name="fetch_url", idempotent=_only_reads, untrusted=True)
async def fetch_url(
    context: ToolContext,
    url: str,
    method: Method = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    start: int = 0,
    max_characters: int = 20_000,
    timeout_seconds: float = 30.0,
) -> ToolResult:
    """Fetch what is at an http:// or https:// URL. Pages come as text with their links, JSON and text as they are.

    Of other kinds of content only type and size are told. Only hosts that you are granted can be fetched from. A text
    that is longer than max_characters is cut; call again with a larger start to read on. Redirects are followed.
    """
    # Only when it is used: most agents never fetch, and what is imported here is not small.
    from ai_whisperer.tools.fetching.fetcher import DEFAULT, request_for

    limits = EffectiveLimits() if context.workplace is None else context.workplace.limits
    if start < 0 or max_characters < 1 or not 0 < timeout_seconds < float("inf"):
        raise ToolError("start must be 0 or more, max_characters and timeout_seconds more than 0. Call again.")
    request = request_for(
        url, method, headers=headers, body=body, max_bytes=min(_MAX_BODY_BYTES, limits.max_file_bytes)
    )
    fetched = await DEFAULT.fetch(
        request,
        grants_of(() if context.workplace is None else context.workplace.network),
        timeout_seconds=min(timeout_seconds, limits.max_tool_seconds),
        progress=context.progress,
    )
    # A large page takes a while to go through.
    return await asyncio.to_thread(result_of, fetched, start=start, max_characters=max_characters)


def result_of(fetched: Fetched, *, start: int, max_characters: int) -> ToolResult:
    """What the model is told of it: where it is from, what it is, how much of it there is, and the text."""
    from ai_whisperer.tools.fetching.content import readable

    is_error = fetched.status >= HTTPStatus.BAD_REQUEST
    lines = [
        f"URL: {fetched.target.url}" + (f" (after {fetched.redirects} redirects)" if fetched.redirects else ""),
        f"Status: {fetched.status} {_phrase(fetched.status)}".rstrip(),
        f"Type: {mended(fetched.kind.name) or 'not stated'}",
    ]
    if not fetched.is_text:
        lines.append(f"Size: {fetched.size:,} bytes" + (f" ({fetched.cut})" if fetched.cut else ""))
        if fetched.size:
            lines.append("The content is not text and is not shown.")
        return ToolResult(content="\n".join(lines), is_error=is_error)
    text = readable(fetched.body, fetched.kind, url=fetched.target.url)
    end = start + min(max_characters, _ERROR_CHARACTERS if is_error else max_characters)
    if fetched.cut:
        lines.append(f"Incomplete: {fetched.cut}.")
    if start or end < len(text):
        more = f"; call again with start={end} to read on" if end < len(text) and not is_error else ""
        lines.append(f"Shown: characters {start:,} to {min(end, len(text)):,} of {len(text):,}{more}")
    return ToolResult(content="\n".join([*lines, "", text[start:end]]), is_error=is_error)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
