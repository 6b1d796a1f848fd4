"""Writes the pages of the reference that are made from the code: `python docs/generate.py`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer import __version__
from ai_whisperer.protocol.openrpc import document
from ai_whisperer.settings import FIELDS, Settings
from ai_whisperer.tools.sandbox.levels import ALL
from ai_whisperer.tools.sandbox.ways_out import WAYS

FOLDER = Path(__file__).parent
CLASSES = (
    ("ai_whisperer.runtime.manager", "AsyncAgentSessionManager"),
    ("ai_whisperer.client", "Client"),
)


_API_INTRODUCTION = """\
Start a server and connect to `/ws` with its token, as `?token=` or as `Authorization: Bearer`:

```sh background
whisperer serve
```

Requests are JSON-RPC 2.0: one a frame, or a batch; a frame has at most 100,000 texts and as many lists and objects.
A session holds the agents; the server makes one called `default` when it starts.

```json
{"jsonrpc": "2.0", "id": 1, "method": "async.createAgent",
 "params": {"sessionId": "default", "agentId": "analyzer", "autoStart": true}}
```

```json
{"jsonrpc": "2.0", "id": 2, "method": "async.sendTask",
 "params": {"sessionId": "default", "agentId": "analyzer", "prompt": "Analyze the latest customer feedback data"}}
```

When a request is answered, what it did is on disk. Requests of one connection take effect in the order in which they
were sent; the answers may come in another. A request that carries an id of its own (`taskId`, `mailId`, `eventId` …)
may be repeated when the connection broke: it takes effect once.

Notifications come after a subscription, from any number on; 0 is from the start:

```json
{"jsonrpc": "2.0", "id": 3, "method": "events.subscribe", "params": {"sessionId": "default", "after": 0}}
```

Each is a JSON-RPC notification whose params have `sessionId`, `seq`, `cause` and `at` beside its own. `seq` rises by
one without gaps. Keep the last one: subscribing after it misses nothing and repeats nothing. A client that does not
read is closed with the code 4008 and the number to resume from. Times are seconds since the epoch."""


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    return {
        "containment.md": "\n".join(_containment()),
        "api.md": "\n".join(_api()),
        "python.md": "\n".join(_python()),
        "settings.md": "\n".join(_settings()),
    }


_CONTAINMENT = """\
# Sandbox escape attempts

A level of the [sandbox](how-to/run-code.md) holds on a machine only if none of these attempts succeeds from within
it; each is tried there before the first program of an agent runs, and by the tests. To try them on yours:

```sh
python -m ai_whisperer.tools.sandbox.ways_out
```

These were found on a bare Debian with the kernel {kernel}: as root, as an ordinary user, and as root in a container
that gives no namespaces and few capabilities. Where a level does not hold nothing runs in it, unless it is `landlock`
or `rlimits` and was named.

| | {levels} |
|---|{dashes}|"""


def _containment() -> Iterator[str]:
    """The page about the ways out, from what was recorded on three machines."""
    recorded: dict[str, Any] = msgspec.json.decode((FOLDER / "containment.json").read_bytes())
    kernel = next(iter(recorded.values()))["kernel"]
    dashes = "|".join("---" for _ in ALL)
    yield _CONTAINMENT.format(kernel=kernel, levels=" | ".join(f"`{level}`" for level in ALL), dashes=dashes)
    for machine, found in recorded.items():
        yield f"| {machine} | {' | '.join(_held(found['levels'][level]) for level in ALL)} |"
    yield f"\nWhere each of the {len(WAYS)} attempts succeeds:\n"
    yield f"| a program could | {' | '.join(f'`{level}`' for level in ALL)} |"
    yield f"|---|{dashes}|"
    for way in WAYS:
        cells = [
            ", ".join(machine for machine, found in recorded.items() if way in found["levels"][level]["waysOut"])
            for level in ALL
        ]
        yield f"| {way} | {' | '.join(cell or 'no' for cell in cells)} |"


def _held(found: dict[str, Any]) -> str:
    if not found["runs"]:
        return "not available"
    return f"{len(found['waysOut'])} succeed" if found["waysOut"] else "**holds**"


def _api() -> Iterator[str]:
    described = document(__version__)
    schemas = described["components"]["schemas"]
    yield "# API: JSON-RPC 2.0 over WebSocket"
    yield ""
    yield "Made from the types by `make docs`; the server answers the same as OpenRPC to `rpc.discover`."
    yield ""
    yield from _API_INTRODUCTION.splitlines()
    yield ""
    yield "## Methods"
    yield ""
    yield "| method | params | result | |"
    yield "|---|---|---|---|"
    for method in described["methods"]:
        params = ", ".join(_param(each) for each in method["params"]) or "none"
        text = f"{method['summary']} {method.get('description', '')}".strip()
        yield f"| `{method['name']}` | {params} | {_kind(method['result']['schema'])} | {_cell(text)} |"
    yield from ["", "## Errors", "", "| code | meaning |", "|---|---|"]
    for error in described["components"]["errors"].values():
        yield f"| {error['code']} | {_cell(error['message'])} |"
    yield from ["", "`error.data.code` is the stable code of the error in `ai_whisperer.errors`."]
    yield from ["", "## Notifications", "", "| name | params beside those of all | |", "|---|---|---|"]
    for note in described["x-notifications"]:
        params = ", ".join(_param(each) for each in note["params"]) or "none"
        yield f"| `{note['name']}` | {params} | {_cell(note['summary'])} |"
    yield from ["", "## Records", ""]
    for name, schema in sorted(schemas.items()):
        yield from _record(name, schema)


def _record(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if "description" in schema:
        yield " ".join(schema["description"].split())
        yield ""
    if "enum" in schema:
        yield "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."
        yield ""
        return
    yield "| field | type |"
    yield "|---|---|"
    for field, kind in schema.get("properties", {}).items():
        yield f"| `{field}` | {_kind(kind)} |"
    yield ""


def _param(param: dict[str, Any]) -> str:
    return f"`{param['name']}{'' if param['required'] else '?'}`: {_kind(param['schema'])}"


def _kind(schema: dict[str, Any]) -> str:
    """The type in a few words, with a link where there is one."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return str(kind or "any")


def _python() -> Iterator[str]:
    yield "# Python API"
    yield ""
    yield "Made from the code by `make docs`."
    for module, name in CLASSES:
        kind = getattr(import_module(module), name)
        yield from ["", f"## {name}", "", inspect.getdoc(kind) or ""]
        for method, function in _public(kind):
            yield from ["", f"### `{name}.{method}`", ""]
            yield f"`{'async ' if inspect.iscoroutinefunction(function) else ''}{method}{_signature(function)}`"
            told = inspect.getdoc(function)
            if told:
                yield from ["", told]


def _public(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_") and inspect.isfunction(member):
            yield name, member


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    without_self = [each for name, each in signature.parameters.items() if name != "self"]
    return str(signature.replace(parameters=without_self)).replace("'", "")


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "Made from the code by `make docs`. Flags go before variables, variables before `whisperer.toml` in the"
    yield "current folder, and that before the defaults. `whisperer config` shows each value and where it came from."
    yield ""
    yield "| key in `whisperer.toml` | flag | variable | default | |"
    yield "|---|---|---|---|---|"
    defaults = Settings()
    for field in FIELDS:
        default = field.shown(getattr(defaults, field.name))
        shown = f"`{default}`" if default not in (None, [], {}) else "none"
        yield f"| `{field.name}` | `{field.flag}` | `{field.variable}` | {shown} | {_cell(field.description)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for file_name, text in pages().items():
        (FOLDER / file_name).write_text(text.rstrip() + "\n", encoding="utf-8")
        sys.stdout.write(f"docs/{file_name}\n")
