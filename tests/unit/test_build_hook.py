"""The page is built into the package, with a Node that can do it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

UI = Path(__file__).parents[2] / "ui"


class Hook:
    """Stands for the class of hatchling, which is there only while a package is built."""

    root = ""

    def __class_getitem__(cls, _: object) -> type[Hook]:
        return cls


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    stands_for: Any = ModuleType("interface")
    stands_for.BuildHookInterface = Hook
    name = ""
    for part in ("hatchling", ".builders", ".hooks", ".plugin", ".interface"):
        name += part
        monkeypatch.setitem(sys.modules, name, stands_for)
    spec = importlib.util.spec_from_file_location("build_hook", UI / "build_hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "is_new"),
    [
        ("v18.20.0", False),
        ("v20.18.9", False),
        ("v20.19.0", True),
        ("v21.7.0", False),
        ("v22.3.0", False),
        ("v22.12.0\n", True),
        ("v24.1.0", True),
        ("v24", False),
        ("", False),
    ],
)
def test_a_node_is_used_if_the_page_can_be_built_with_it(hook: ModuleType, version: str, is_new: bool) -> None:  # noqa: FBT001
    assert json.loads((UI / "package.json").read_text())["engines"]["node"] == "^20.19.0 || >=22.12.0"
    assert hook.is_new_enough(version) is is_new


def test_without_npm_it_is_said_how_to_install_without_the_page(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WHISPERER_PAGE", raising=False)
    (tmp_path / "ui").mkdir()
    unbuilt = hook.PageBuildHook()
    unbuilt.root = str(tmp_path)
    with pytest.raises(RuntimeError, match="WHISPERER_PAGE=skip pip install"):
        unbuilt.initialize("standard", {})
