"""Imports point one way: domain ← core ← store, models, sandbox ← cluster, tools ← runtime ← server, cli."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ai_whisperer"

WORDS = {
    "choices",
    "domain",
    "version",
    "errors",
    "late_pattern",
    "mcp_config",
    "secrets",
    "setting_sources",
    "setting_values",
    "settings",
}
ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(WORDS, WORDS),
    "__main__": {"cli"},
    "__init__": WORDS | {"store", "runtime", "templates", "tools", "client", "scripting", "task_stream"},
    "core": WORDS | {"core"},
    "input_parts": WORDS | {"core"},
    "task_stream": WORDS | {"core"},
    "session_api": WORDS | {"core", "templates", "task_stream"},
    "store": WORDS | {"core", "store"},
    "cluster": WORDS | {"core", "store", "cluster"},
    "models": WORDS | {"core", "models"},
    "sandbox": WORDS | {"core", "sandbox"},
    "tools": WORDS | {"core", "sandbox", "tools"},
    "templates": WORDS | {"core", "templates"},
    "runtime": WORDS
    | {"core", "store", "cluster", "models", "sandbox", "tools", "templates", "runtime", "session_api", "task_stream"}
    | {"input_parts"},
    "protocol": WORDS | {"templates", "protocol", "session_api"},
    "server": WORDS
    | {
        "core",
        "store",
        "cluster",
        "models",
        "sandbox",
        "tools",
        "templates",
        "runtime",
        "protocol",
        "client",
        "server",
        "session_api",
        "__init__",
    },
    "client": WORDS | {"core", "protocol", "client", "session_api", "task_stream", "input_parts", "__init__"},
    "simulation": WORDS | {"store", "simulation"},
    "replay": WORDS | {"core", "store", "models", "tools", "templates", "runtime", "simulation", "replay"},
    "storm": WORDS
    | {"core", "models", "tools", "templates", "runtime", "simulation", "replay", "testing", "storm", "__init__"},
    "scripting": WORDS | {"core", "models", "client", "server", "scripting", "session_api", "task_stream"},
    "examples": WORDS | {"store", "tools", "protocol", "server", "client", "examples", "__init__"},
    "cli": WORDS
    | {"core", "store", "models", "sandbox", "tools", "templates", "runtime", "protocol", "server", "client", "cli"}
    | {"cluster", "examples", "replay", "storm", "__init__"},
    "testing": WORDS
    | {"core", "store", "models", "tools", "runtime", "simulation", "replay", "testing", "scripting", "__init__"},
}
"""What each part of the package may import of the package."""

ROOMS: dict[str, set[str]] = {
    "session": set(),
    "limits": {"session"},
    "waiting": {"session"},
    "messaging": {"session", "limits", "waiting"},
    "agents": {"session", "limits", "waiting", "messaging"},
    "life": {"session", "limits", "waiting", "messaging", "agents"},
    "api": {"session", "limits", "waiting", "messaging", "agents", "life"},
}
"""Which rooms of `runtime` each of them may import."""

LOADED_WHEN_WANTED = {"runtime/api/page.py": ["ai_whisperer.server.embedding"]}
"""Who loads, by its name, what is above it: only for those who want it, since the rest is built on this part."""


SQLITE = "ai_whisperer.store.sqlite"
KNOW_SQLITE = {
    "__init__.py",
    "cli/commands/doctor.py",
    "cli/doctor/folder.py",
    "cli/doctor/machine.py",
    "examples/account.py",
    "runtime/life/store.py",
    "store/postgresql/copying.py",
    "store/transfer.py",
    "simulation/disk.py",
    "testing/faulty_vfs.py",
    "testing/power_vfs.py",
}
"""Who knows which store it is: whoever opens one, or looks after its files. All others know the contract alone."""


POSTGRESQL = "ai_whisperer.store.postgresql"
KNOW_POSTGRESQL = {
    "cli/commands/serve.py",
    "cli/commands/store.py",
    "cli/doctor/folder.py",
    "cli/ray_cluster.py",
    "cluster/joining.py",
    "cluster/ray/keeping.py",
    "cluster/ray/shell.py",
    "runtime/life/store.py",
    "store/transfer.py",
}
"""The same for PostgreSQL."""


KNOW_RAY = {"cluster/ray/connecting.py", "cluster/ray/crew.py", "cluster/ray/probing.py"}
"""Who imports Ray, and only when it is called: the actors, and the commands that make them."""


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """What may import something in a module."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]


def imports_of(source: str, *, by_name: bool = True) -> Iterator[str]:
    """What a module imports; `by_name`: also what it loads by its name."""
    for node in nodes_of(source):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ai_whisperer":
            if node.module == "ai_whisperer":
                yield from (f"ai_whisperer.{alias.name}" if (PACKAGE / alias.name).exists() else "ai_whisperer"
                            for alias in node.names)  # fmt: skip
            else:
                yield from (_module_of(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ai_whisperer")
        elif by_name and isinstance(node, ast.Call) and any(map(loads, (node.func, *node.args))):
            names = (each.value for each in node.args if isinstance(each, ast.Constant))
            yield from (name for name in names if isinstance(name, str) and name.split(".")[0] == "ai_whisperer")


def _module_of(package: str, name: str) -> str:
    """The module that is imported: one of the package by its name, or the package itself."""
    path = PACKAGE.parent.joinpath(*package.split("."), name)
    return f"{package}.{name}" if path.with_suffix(".py").exists() or path.is_dir() else package


def loads(node: ast.expr) -> bool:
    """Whether this is what loads a module by its name."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("import_module", "__import__")


def upward_imports(layer: str, source: str) -> list[str]:
    return [module for module in imports_of(source) if layer_of(module) not in ALLOWED[layer]]


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["runtime"] and len(parts) > 2 else None


def imports_of_higher_rooms(room: str, source: str) -> list[str]:
    return [each for each in imports_of(source) if room_of(each) not in {None, room, *ROOMS[room]}]


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """The modules that cannot be loaded one after the other: what is left when those are taken away that can."""
    left = {module: set(imported) & graph.keys() - {module} for module, imported in graph.items()}
    for ahead in (True, False):  # then also those that nothing of the cycle needs
        while loose := [module for module, imported in left.items() if not imported]:
            for module in loose:
                del left[module]
            for imported in left.values():
                imported.difference_update(loose)
        if ahead:
            left = {module: {each for each in left if module in left[each]} for module in left}
    return [sorted(left)] if left else []


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_is_below_it(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    layer = relative.parts[0].removesuffix(".py")
    assert layer in ALLOWED, f"say in this test what '{layer}' may import"
    upward = upward_imports(layer, path.read_text(encoding="utf-8"))
    assert upward == LOADED_WHEN_WANTED.get(relative.as_posix(), [])


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("core", "from ai_whisperer.store.base import Unit"),
        ("core", "import ai_whisperer.runtime.api.manager"),
        ("store", "from ai_whisperer.runtime import manager"),
        ("models", "def f():\n    from ai_whisperer.tools.function import tool"),
        ("runtime", "from ai_whisperer import AsyncAgentSessionManager"),
        ("runtime", "from ai_whisperer.cli.main import main"),
        ("runtime", "import_module('ai_whisperer.server.serving')"),
        ("core", "importlib.import_module('ai_whisperer.store')"),
        ("core", "asyncio.to_thread(import_module, 'ai_whisperer.store.base')"),
        ("replay", "from ai_whisperer.testing.team import Team"),
    ],
)
def test_an_import_upwards_would_be_found(layer: str, source: str) -> None:
    assert len(upward_imports(layer, source)) == 1


@pytest.mark.parametrize("path", sorted((PACKAGE / "runtime").rglob("*.py")), ids=name_of)
def test_a_room_imports_only_those_below_it(path: Path) -> None:
    parts = path.relative_to(PACKAGE / "runtime").parts
    if len(parts) > 1:
        assert imports_of_higher_rooms(parts[0], path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("session", "from ai_whisperer.runtime.limits.stated import StatedLimits"),
        ("waiting", "if TYPE_CHECKING:\n    from ai_whisperer.runtime.agents.agent import LiveAgent"),
        ("agents", "from ai_whisperer.runtime import api"),
    ],
)
def test_a_room_that_reaches_up_would_be_found(room: str, source: str) -> None:
    assert len(imports_of_higher_rooms(room, source)) == 1


def test_no_parts_may_import_each_other_in_a_cycle() -> None:
    """The package itself stands for what it hands on."""
    parts = {part: imported - {"__init__"} for part, imported in ALLOWED.items() if part not in {*WORDS, "__init__"}}
    assert cycles(parts) == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """What is imported for its types alone counts, too."""
    graph = {name_of(each): set(imports_of(each.read_text(encoding="utf-8"), by_name=False)) for each in modules()}
    assert cycles(graph) == []


def test_a_cycle_would_be_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == [["a", "b", "c"]]


def names_sqlite(source: str) -> bool:
    """Whether the source imports something of SQLite's, its store or the library."""
    return names_any(source, SQLITE, "apsw")


def names_any(source: str, *packages: str) -> bool:
    nodes = nodes_of(source)
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    modules = [
        *(alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names),
        *(f"{node.module}.{alias.name}" for node in froms for alias in node.names),
        *imports_of(source),
    ]
    beginnings = tuple(f"{each}." for each in packages)
    return any(f"{module}.".startswith(beginnings) for module in modules)


def test_only_who_opens_a_store_knows_that_it_is_in_sqlite() -> None:
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if "store/sqlite" not in path.as_posix() and names_sqlite(path.read_text(encoding="utf-8"))
    }
    assert knowing == KNOW_SQLITE


def test_only_who_opens_a_store_knows_that_it_is_in_postgresql() -> None:
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if "store/postgresql" not in path.as_posix()
        and names_any(path.read_text(encoding="utf-8"), POSTGRESQL, "asyncpg")
    }
    assert knowing == KNOW_POSTGRESQL


def test_only_who_makes_actors_imports_ray_and_only_when_it_is_called() -> None:
    knowing = {
        path.relative_to(PACKAGE).as_posix() for path in modules() if names_any(path.read_text(encoding="utf-8"), "ray")
    }
    assert knowing == KNOW_RAY
    program = (
        "import sys, ai_whisperer.cli.commands.cluster, ai_whisperer.cluster.ray.crew; "
        "print([m for m in ('ray', 'asyncpg') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() in ("['asyncpg']", "[]")


def test_the_status_of_a_cluster_is_shown_where_neither_ray_nor_asyncpg_is_installed() -> None:
    program = (
        "import sys; sys.modules['asyncpg'] = sys.modules['ray'] = None; "
        "from ai_whisperer.cli.commands import cluster; from ai_whisperer.domain.cluster import RayStatus; "
        "ray = RayStatus(address='a:1', wanted=2, silent_seconds=11, least=1, most=3, sessions_each=9); "
        "print(cluster.is_silent(ray), cluster.silence(ray), cluster.choice(ray))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.stdout.startswith("True The Ray at a:1 was last heard of 11 s ago"), told


@pytest.mark.parametrize(
    "source",
    [
        "from ai_whisperer.store.sqlite import SqliteStore",
        "from ai_whisperer.store.sqlite.opening import check_file",
        "from ai_whisperer.store import base, sqlite",
        "def f():\n    import ai_whisperer.store.sqlite.custody",
        "import_module('ai_whisperer.store.sqlite')",
        "import apsw",
    ],
)
def test_an_import_of_sqlite_would_be_found(source: str) -> None:
    assert names_sqlite(source)
    assert not names_sqlite("from ai_whisperer.store.base import Store")


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, ai_whisperer; print([m for m in ('asyncio','msgspec','apsw','pydantic') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_manager_can_be_had_without_the_provider_library() -> None:
    program = "import sys; from ai_whisperer import AsyncAgentSessionManager; print('pydantic_ai' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"


def test_the_server_starts_without_what_it_needs_later() -> None:
    program = (
        "import sys, ai_whisperer.server.serving; "
        "print([m for m in ('prometheus_client', 'pydantic', 'pydantic_ai', 'typer', 'rich') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_every_public_name_can_be_imported() -> None:
    import ai_whisperer

    for name in ai_whisperer.__all__:
        assert getattr(ai_whisperer, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ai_whisperer.nonsense
