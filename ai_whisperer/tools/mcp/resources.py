"""The resources of an MCP server: two tools of ours show which it has, and read one. A server may say anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.errors import McpError, ToolArgumentsError
from ai_whisperer.tools.mcp.binary import Keep, Sieve
from ai_whisperer.tools.mcp.results import resource_text

LIST = "list_resources"
READ = "read_resource"
_MAX_URI = 4_000
_MAX_LISTED = 500
_MAX_DESCRIPTION = 300
_MAX_CONTENTS = 100
_TEXT = {"type": "string"}

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Asks the server, by method and params; raises `McpError`."""


def resource_specs(server: str, name_of: Callable[[str], str]) -> dict[str, ToolSpec]:
    """The tools as models are told about them, by what they do."""
    lists = ToolSpec(
        name=name_of(LIST),
        description=f"List the resources of the MCP server '{server}': what can be read, and templates of their URIs.",
        parameters={"type": "object", "properties": {"cursor": {**_TEXT, "description": "Where the last list ended."}}},
        untrusted=True,
    )
    reads = ToolSpec(
        name=name_of(READ),
        description=f"Read a resource of the MCP server '{server}' by its URI, as {lists.name} tells it.",
        parameters={"type": "object", "properties": {"uri": _TEXT}, "required": ["uri"]},
        untrusted=True,
    )
    return {LIST: lists, READ: reads}


async def list_resources(ask: Ask, arguments: Mapping[str, Any]) -> ToolResult:
    """One page of what the server has, and with the first its templates; raises `McpError`."""
    cursor = _text_in(arguments, "cursor") if arguments.get("cursor") is not None else None
    page = await ask("resources/list", {} if cursor is None else {"cursor": cursor})
    lines = list(_lines(_entries(page, "resources"), "uri"))
    if cursor is None:
        try:
            templates = list(
                _lines(_entries(await ask("resources/templates/list", {}), "resourceTemplates"), "uriTemplate")
            )
        except McpError:  # a server need not have any, and says so in many ways
            templates = []
        lines += ["Fill in what stands in braces:", *templates] if templates else []
    following = page.get("nextCursor")
    if isinstance(following, str) and following:
        lines.append(f"There are more: call again with the cursor {following[:_MAX_URI]!r}.")
    return _result("\n".join(lines) or "There are no resources.")


async def read_resource(ask: Ask, arguments: Mapping[str, Any]) -> Any:
    """What the server answers; raises `ToolArgumentsError` or `McpError`. `resource_result` makes text of it."""
    return await ask("resources/read", {"uri": _text_in(arguments, "uri")})


def resource_result(raw: Any, keep: Keep) -> ToolResult:
    """The contents of a resource as text. What is binary is kept and told about."""
    contents = raw.get("contents") if isinstance(raw, Mapping) else None
    if not isinstance(contents, list):
        raise McpError("The MCP server returned something that is not a resource.")
    sieve = Sieve(keep)
    texts = [resource_text(each, sieve) for each in contents[:_MAX_CONTENTS]]
    if len(contents) > _MAX_CONTENTS:
        texts.append(f"[{len(contents) - _MAX_CONTENTS:,} more parts are not shown]")
    return _result("\n".join(texts) or "The resource is empty.")


def _result(content: str) -> ToolResult:
    return ToolResult(content=mended(content), untrusted=True)


def _text_in(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value or len(value) > _MAX_URI:
        raise ToolArgumentsError(f"{name} must be text of at most {_MAX_URI:,} characters, as {LIST} tells it.")
    return value


def _entries(page: Any, key: str) -> list[Any]:
    entries = page.get(key) if isinstance(page, Mapping) else None
    if not isinstance(entries, list):
        raise McpError("The MCP server lists its resources in a way that cannot be read.")
    return entries


def _lines(entries: list[Any], key: str) -> Iterator[str]:
    for entry in entries[:_MAX_LISTED]:
        uri = entry.get(key) if isinstance(entry, Mapping) else None
        if isinstance(uri, str) and 0 < len(uri) <= _MAX_URI:
            told = [entry.get(each) for each in ("name", "mimeType", "description")]
            words = ", ".join(
                " ".join(each.split())[:_MAX_DESCRIPTION] for each in told if isinstance(each, str) and each
            )
            yield f"{uri} ({words})" if words else uri
    if len(entries) > _MAX_LISTED:
        yield f"[{len(entries) - _MAX_LISTED:,} more are not shown]"
