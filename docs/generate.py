"""Writes the pages of the reference that are made from the code: `python docs/generate.py`."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

import ai_whisperer
from ai_whisperer import __version__, scripting
from ai_whisperer.protocol.errors import stable_codes
from ai_whisperer.protocol.openrpc import document
from ai_whisperer.sandbox.levels import ALL
from ai_whisperer.sandbox.ways_out import WAYS
from ai_whisperer.scripting import SyncClient
from ai_whisperer.settings import FIELDS, Settings

FOLDER = Path(__file__).parent
CLASSES = (
    ("ai_whisperer", "AsyncAgentSessionManager"),
    ("ai_whisperer", "Client"),
    ("ai_whisperer.scripting", "SyncClient"),
    ("ai_whisperer", "TaskStream"),
    ("ai_whisperer.runtime.session.log", "Subscription"),
    ("ai_whisperer.client", "EventStream"),
    ("ai_whisperer", "AgentSession"),
    ("ai_whisperer", "ToolContext"),
    ("ai_whisperer", "TemplateLibrary"),
    ("ai_whisperer", "WhispererError"),
)
HANDLES = {"AgentSession": ("agent_id", "state")}
"""What programs use of classes that are otherwise for the inside."""
RECORDS = (
    "ai_whisperer.domain.agents",
    "ai_whisperer.domain.tasks",
    "ai_whisperer.domain.mail",
    "ai_whisperer.domain.task_events",
    "ai_whisperer.domain.notification",
    "ai_whisperer.domain.timers",
    "ai_whisperer.domain.sessions",
    "ai_whisperer.domain.tools",
    "ai_whisperer.domain.usage",
    "ai_whisperer.domain.limits",
    "ai_whisperer.domain.approvals",
    "ai_whisperer.domain.questions",
    "ai_whisperer.domain.waits",
    "ai_whisperer.domain.locks",
    "ai_whisperer.domain.events",
    "ai_whisperer.domain.schedules",
    "ai_whisperer.domain.rooms",
    "ai_whisperer.domain.attachments",
    "ai_whisperer.domain.memory",
    "ai_whisperer.domain.compactions",
    "ai_whisperer.domain.providers",
    "ai_whisperer.domain.retention",
    "ai_whisperer.domain.conversation",
    "ai_whisperer.domain.definition",
    "ai_whisperer.templates.parsing",
    "ai_whisperer.domain.snapshot",
    "ai_whisperer.domain.cluster",
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

A connection gets the notifications of a session from its first `async.*` call in it on. They may come before the
answer: a frame with a `method` is a notification, one with an `id` an answer. All others come after a subscription,
from any number on; 0 is from the start. A connection to `/ws?notifications=explicit` gets what it subscribes to, and
no more.

```json
{"jsonrpc": "2.0", "id": 3, "method": "events.subscribe", "params": {"sessionId": "default", "after": 0}}
```

Each is a JSON-RPC notification whose params have `sessionId`, `seq`, `cause` and `at` beside its own. `seq` rises by
one without gaps. Keep the last one: subscribing after it misses nothing and repeats nothing. A client that does not
read is closed with the code 4008 and the number to resume from. A node that the others took for dead closes its
connections with 1012: connect to another, and repeat what was not answered. Times are seconds since the epoch.

Answers are streamed as `async.task.delta`, by channel. These have no number, and a client that lags misses some:
`offset` is how many characters of the attempt came before the piece. Some models close reasoning that they never opened
(`… </think>`), which nobody can know before: until then it is sent as `final`. From then on the pieces of the attempt
have `analysisUntil`: at the first of them move all that you have shown of the attempt to `analysis`. An answer that
reached its greatest length is continued in another task (`async.task.continuation` with `cut`): add its pieces to those
before, as they are. After one without `cut` they begin a line. The result of the last task has only its own part,
`task.wait` answers the whole."""


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
python -m ai_whisperer.sandbox.ways_out
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
    meanings = {error["code"]: error["message"] for error in described["components"]["errors"].values()}
    for error in described["components"]["errors"].values():
        yield f"| {error['code']} | {_cell(error['message'])} |"
    yield from [
        "",
        "`error.data.code` is the stable code of the error, in `ai_whisperer.errors` if it is one of its own:",
    ]
    yield from ["", "| `data.code` | code | meaning |", "|---|---|---|"]
    for each in stable_codes():
        meaning = each.meaning or meanings[each.number]
        yield f"| `{each.code}` | {each.number} | {_cell(meaning)} |"
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
    if "enum" in schema and None not in schema["enum"]:
        return ", ".join(f'"{each}"' for each in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return str(kind or "any")


def _python() -> Iterator[str]:
    yield "# Python API"
    yield ""
    yield "Made from the code by `make docs`. What is listed without a module can be imported from `ai_whisperer`;"
    yield "errors are in [the reference](reference.md#errors)."
    for module, name in CLASSES:
        yield from _class(name, getattr(import_module(module), name))
    yield from ["", "## Functions", ""]
    for name in (
        "tool",
        "load_template",
        "accept_loss",
        "use_folder",
        "backup",
        "restore",
        "export_session",
        "import_into_folder",
    ):
        yield from _function(name, getattr(ai_whisperer, name))
    yield from ["", "## Scripting", "", inspect.getdoc(scripting) or ""]
    for name in scripting.__all__:
        found = getattr(scripting, name)
        if inspect.isfunction(found):
            yield from _function(f"scripting.{name}", found)
    yield from ["", "## Records"]
    yield from ["", "Frozen: `msgspec.structs.replace` makes a changed copy. Times are seconds since the epoch."]
    for module in RECORDS:
        for kind in _kinds_of(import_module(module)):
            yield from _python_record(kind)


def _class(name: str, kind: type) -> Iterator[str]:
    yield from ["", f"## {name}", ""]
    if "__init__" in vars(kind):
        yield from [_code(f"{name}{_written(vars(kind)['__init__'])}"), ""]
    yield inspect.getdoc(kind) or ""
    if issubclass(kind, msgspec.Struct):
        yield from _field_table(kind)
    for method, member in inspect.getmembers(kind):
        if method.startswith("_") or method not in HANDLES.get(name, (method,)):
            continue
        if inspect.isfunction(member) and not (kind is SyncClient and hasattr(member, "__wrapped__")):
            yield from _function(f"{name}.{method}", member)  # what is left out is as in the client
        elif isinstance(member, property):
            yield from ["", f"### `{name}.{method}`", "", f"A property: {_code(_annotation(member.fget))}."]
            yield from ["", told] if (told := inspect.getdoc(member)) else []


def _function(name: str, function: Any) -> Iterator[str]:
    function = inspect.unwrap(function)
    is_async = inspect.iscoroutinefunction(function) and not name.startswith(("scripting.", "SyncClient."))
    yield from ["", f"### `{name}`", ""]
    yield _code(f"{'async ' if is_async else ''}{name.rpartition('.')[2]}{_written(function)}")
    told = inspect.getdoc(function)
    if told:
        yield from ["", told]


def _written(function: Any) -> str:
    """The parameters and what is returned, as they are written: with the defaults and the names of types as there."""
    node = _node_of(function)
    given = node.args
    ordered = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(ordered) - len(given.defaults)) + given.defaults
    told = [_parameter(*each, function) for each in zip(ordered, defaults, strict=True) if each[0].arg != "self"]
    if given.vararg:
        told.append("*" + _parameter(given.vararg, None, function))
    elif given.kwonlyargs:
        told.append("*")
    told += [_parameter(*each, function) for each in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        told.append("**" + _parameter(given.kwarg, None, function))
    returned = "" if node.returns is None or function.__name__ == "__init__" else f" -> {ast.unparse(node.returns)}"
    return f"({', '.join(told)}){returned}"


def _parameter(argument: ast.arg, default: ast.expr | None, function: Any) -> str:
    kind = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    if default is None:
        return argument.arg + kind
    value = function.__globals__.get(default.id) if isinstance(default, ast.Name) else None
    shown = repr(value) if isinstance(value, str | int | float) else ast.unparse(default)
    return f"{argument.arg}{kind} = {shown}".replace("'", '"')


def _annotation(function: Any) -> str:
    returned = _node_of(function).returns
    return "" if returned is None else ast.unparse(returned)


def _node_of(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101 - the source of a function is one
    return node


def _kinds_of(module: Any) -> list[type]:
    """The records and enumerations that are made in the module, in its order."""
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in found if issubclass(each, msgspec.Struct | Enum) and not each.__name__.startswith("_")]


def _python_record(kind: type) -> Iterator[str]:
    place = "" if kind.__name__ in ai_whisperer.__all__ else f" (`{kind.__module__}`)"
    yield from ["", f"### {kind.__name__}{place}"]
    told = inspect.getdoc(kind) if kind.__doc__ else None
    yield from ["", told] if told else []
    if issubclass(kind, Enum):
        yield from ["", "One of " + ", ".join(_code(str(each.value)) for each in kind) + "."]
        return
    yield from _field_table(kind)
    properties = [name for name, member in inspect.getmembers(kind) if isinstance(member, property)]
    if properties:
        yield from ["", "Also has " + ", ".join(_code(name) for name in properties) + "."]


def _field_table(kind: type) -> Iterator[str]:
    fields = {name: field for name, field in _fields(kind).items() if not name.startswith("_")}
    if fields:
        yield from ["", "| field | type | default |", "|---|---|---|"]
    for name, (annotation, default) in fields.items():
        yield f"| `{name}` | {_cell(_code(annotation))} | {_cell(_code(default)) if default else ''} |"


def _fields(kind: type) -> dict[str, tuple[str, str]]:
    """The types and the defaults of the fields, as they are written, those of its bases first."""
    found: dict[str, tuple[str, str]] = {}
    for each in reversed(kind.__mro__):
        if not issubclass(each, msgspec.Struct) or each is msgspec.Struct:
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                default = "" if line.value is None else ast.unparse(line.value)
                found[line.target.id] = (ast.unparse(line.annotation), default)
    return found


def _code(text: str) -> str:
    return f"`{text}`"


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
