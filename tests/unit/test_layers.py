"""Imports point one way: domain ← core ← store, models, tools ← runtime ← server, cli, cluster."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ai_whisperer"

WORDS = {"choices", "domain", "errors", "mcp_config", "near_names", "secrets", "setting_values", "settings"}
ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(WORDS, WORDS),
    "__main__": {"cli"},
    "__init__": WORDS | {"store", "runtime", "templates", "tools", "client", "scripting", "task_stream"},
    "core": WORDS | {"core"},
    "task_stream": WORDS | {"core"},
    "store": WORDS | {"core", "store"},
    "models": WORDS | {"core", "models"},
    "tools": WORDS | {"core", "tools"},
    "templates": WORDS | {"core", "templates"},
    "runtime": WORDS | {"core", "store", "models", "tools", "templates", "runtime", "task_stream"},
    "protocol": WORDS | {"templates", "protocol"},
    "server": WORDS | {"core", "store", "models", "tools", "templates", "runtime", "protocol", "server", "__init__"},
    "client": WORDS | {"core", "templates", "protocol", "client", "task_stream", "__init__"},
    "scripting": WORDS | {"core", "models", "client", "server", "scripting", "task_stream"},
    "cli": WORDS
    | {"core", "store", "models", "tools", "templates", "runtime", "protocol", "server", "client", "cli", "__init__"},
    "testing": WORDS | {"core", "store", "models", "tools", "runtime", "testing", "__init__"},
}
"""What each part of the package may import of the package."""

LOADED_WHEN_WANTED = {"runtime/api/page.py": ["ai_whisperer.server.embedding"]}
"""Who loads, by its name, what is above it: only for those who want it, since the rest is built on this part."""


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports_of(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ai_whisperer":
            if node.module == "ai_whisperer":
                yield from (f"ai_whisperer.{alias.name}" if (PACKAGE / alias.name).exists() else "ai_whisperer"
                            for alias in node.names)  # fmt: skip
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ai_whisperer")
        elif isinstance(node, ast.Call) and any(map(loads, (node.func, *node.args))):
            names = (each.value for each in node.args if isinstance(each, ast.Constant))
            yield from (name for name in names if isinstance(name, str) and name.split(".")[0] == "ai_whisperer")


def loads(node: ast.expr) -> bool:
    """Whether this is what loads a module by its name."""
    return ast.unparse(node).split(".")[-1] in ("import_module", "__import__")


def upward_imports(layer: str, source: str) -> list[str]:
    return [module for module in imports_of(source) if layer_of(module) not in ALLOWED[layer]]


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
    ],
)
def test_an_import_upwards_would_be_found(layer: str, source: str) -> None:
    assert len(upward_imports(layer, source)) == 1


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
