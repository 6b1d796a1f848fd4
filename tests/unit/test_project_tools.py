"""Tools from files: what a file has to be like, and what is said of one that is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ai_whisperer import tool
from ai_whisperer.domain.tools import Extent, ToolKind
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.project_files import ToolFile, load_tool_files, standard_folder
from ai_whisperer.tools.registry import told_missing
from ai_whisperer.tools.toolbox import ToolBox

COUNT = """
from ai_whisperer import tool

@tool(idempotent=True, touches="read file:{path}")
def count(path: str) -> int:
    \"\"\"Count.\"\"\"
    return 1

def not_a_tool() -> None: ...
"""


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / ".whisperer" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return folder


def loaded(folder: Path) -> dict[str, ToolFile]:
    return {file.path.stem: file for file in load_tool_files([folder])}


def error_in(folder: Path, stem: str) -> str:
    error = loaded(folder)[stem].error
    assert error is not None
    return error


def test_every_tool_of_a_file_and_nothing_else_is_found(tmp_path: Path) -> None:
    file = loaded(folder_with(tmp_path, counting=COUNT))["counting"]
    assert ([each.name for each in file.tools], file.error) == (["count"], None)
    assert (file.tools[0].idempotent, file.tools[0].touches) == (True, "read file:{path}")


def test_no_folder_is_no_error(tmp_path: Path) -> None:
    assert load_tool_files([tmp_path / "nowhere"]) == []


@pytest.mark.parametrize("line", ["from ._shared import LIMIT", "from _shared import LIMIT", "import _shared"])
def test_a_file_can_use_its_neighbours_and_those_with_an_underscore_have_no_tools(tmp_path: Path, line: str) -> None:
    folder = folder_with(tmp_path, counting=f"{line}\n{COUNT}", _shared=f"LIMIT = 5\n{COUNT}")
    before, path = set(sys.modules), list(sys.path)
    assert list(loaded(folder)) == ["counting"]
    assert loaded(folder)["counting"].error is None
    assert sys.path == path
    assert not any(name.startswith("_shared") for name in set(sys.modules) - before)


def test_a_tool_that_a_file_takes_from_its_neighbour_is_the_neighbours(tmp_path: Path) -> None:
    files = loaded(folder_with(tmp_path, counting=COUNT, other=f"from .counting import count\n{COUNT}"))
    assert [each.name for each in files["counting"].tools] == ["count"]
    files = loaded(folder_with(tmp_path, other="from .counting import count\n"))
    assert "there is no tool in it" in (files["other"].error or "")


def test_two_folders_do_not_mix_up_their_shared_files(tmp_path: Path) -> None:
    use = "from _shared import NAME\nfrom ai_whisperer import tool\n@tool(name=NAME)\ndef it() -> str: ...\n"
    one = folder_with(tmp_path / "one", use=use, _shared="NAME = 'first'")
    two = folder_with(tmp_path / "two", use=use, _shared="NAME = 'second'")
    assert [file.tools[0].name for file in load_tool_files([one, two])] == ["first", "second"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\ndef broken(:\n", "line 2: the file cannot be loaded: SyntaxError: invalid syntax"),
        ("\n\nundefined\n", "line 3: the file cannot be loaded: NameError: name 'undefined'"),
        ("import no_such_module\n", "line 1: the file cannot be loaded: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "line 1: the file cannot be loaded: SystemExit: 3"),
        ("def f(): f()\nf()\n", "RecursionError"),
        ("x = '\0'\n", "source code string cannot contain null bytes"),
        ("x = 1\n", "there is no tool in it"),
        ("from ai_whisperer import tool\n@tool\ndef f(*args): ...\n", "The tool 'f' cannot have the parameter '*args'"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_the_others_are_loaded(tmp_path: Path, source: str, told: str) -> None:
    folder = folder_with(tmp_path, broken=source, counting=COUNT)
    assert told in error_in(folder, "broken")
    assert str(folder / "broken.py") in error_in(folder, "broken")
    assert loaded(folder)["counting"].error is None


@pytest.mark.parametrize("hint", ["socket.socket", "list[socket.socket] | None", "Nowhere", "type"])
def test_a_tool_that_models_cannot_call_is_left_out_and_the_others_of_its_file_are_not(
    tmp_path: Path, hint: str
) -> None:
    odd = f"from __future__ import annotations\nimport socket\n{COUNT}\n@tool\ndef odd(x: {hint}) -> str: ...\n"
    file = loaded(folder_with(tmp_path, odd=odd))["odd"]
    assert [each.name for each in file.tools] == ["count"]
    assert str(file.path) in (file.error or "")
    assert "The tool 'odd' has " in (file.error or "")
    assert "The tool is left out." in (file.error or "")
    toolbox = ToolBox(files=[file])
    assert [each.name for each in toolbox.tools] == ["count"]
    assert toolbox.errors == [file.error]
    assert [each.error for each in toolbox.entries() if each.error] == [file.error]


def test_a_tool_in_a_file_can_take_paths_and_models_of_pydantic(tmp_path: Path) -> None:
    source = """
from pathlib import Path
from pydantic import BaseModel
from ai_whisperer import tool

class Order(BaseModel):
    article: str

@tool
def order(order: Order, bill: Path) -> str:
    return order.article
"""
    file = loaded(folder_with(tmp_path, order=source))["order"]
    assert ([each.name for each in file.tools], file.error) == (["order"], None)


def test_a_file_that_everybody_can_change_is_not_run(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, counting=COUNT)
    (folder / "counting.py").chmod(0o666)
    assert "everybody can change it" in error_in(folder, "counting")


@pytest.mark.parametrize("which", ["", "_shared.py"])
def test_nothing_is_run_where_everybody_can_change_what_is_imported(tmp_path: Path, which: str) -> None:
    folder = folder_with(tmp_path, counting=f"raise SystemExit\n{COUNT}", _shared="")
    (folder / which).chmod(0o777)
    (file,) = load_tool_files([folder])
    assert (file.path, file.tools) == (folder, ())
    assert "everybody can change it" in (file.error or "")


def test_a_file_of_another_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path, counting=COUNT)
    if folder.stat().st_uid == 0:
        os.chown(folder / "counting.py", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert any("belongs to another user" in (file.error or "") for file in load_tool_files([folder]))


def test_of_two_tools_with_one_name_neither_is_taken_and_both_files_are_named(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, one=COUNT, two=f"{COUNT}\n@tool\ndef other() -> str: ...\n")
    box = ToolBox([], load_tool_files([folder]))
    assert [each.name for each in box.tools] == ["other"]
    assert len(box.errors) == 2
    for error in box.errors:
        assert f"in {folder / 'one.py'} and in {folder / 'two.py'}" in error


@pytest.mark.parametrize("name", ["send_mail", "provided"])
def test_a_name_that_is_taken_without_files_stays_what_it_is(tmp_path: Path, name: str) -> None:
    source = f"from ai_whisperer import tool\n@tool(name={name!r})\ndef it() -> str: ...\n"
    provided = Tool(lambda: "mine", name="provided")
    box = ToolBox([provided], load_tool_files([folder_with(tmp_path, it=source)]))
    assert box.tools == (provided,)
    assert f"there is a tool '{name}' already" in box.errors[0]


def test_all_tools_are_listed_with_what_is_said_of_them(tmp_path: Path) -> None:
    @tool(needs_approval=lambda _: True, touches=lambda _: (), untrusted=True)
    def mine() -> str:
        """Mine."""
        return ""

    folder = folder_with(tmp_path, counting=COUNT, broken="x")
    entries = ToolBox([mine], load_tool_files([folder])).entries()
    by_name = {entry.name: entry for entry in entries if entry.error is None}
    assert (by_name["count"].source, by_name["count"].idempotent) == (str(folder / "counting.py"), Extent.ALWAYS)
    assert by_name["count"].touches == ("read file:{path}",)
    assert (by_name["mine"].needs_approval, by_name["mine"].untrusted) == (Extent.SOMETIMES, True)
    assert by_name["send_mail"].kind is ToolKind.COORDINATION
    assert [entry.source for entry in entries if entry.error is not None] == [str(folder / "broken.py")]


def test_the_tools_of_a_project_are_beside_its_templates(tmp_path: Path) -> None:
    assert standard_folder(tmp_path) == tmp_path / ".whisperer" / "tools"


def test_a_file_cannot_take_the_place_of_a_built_in_tool(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, mine=COUNT + COUNT.replace("count", "write_file"))
    box = ToolBox(files=load_tool_files([folder]))
    assert [each.name for each in box.tools] == ["count"]
    (told,) = box.errors
    assert "mine.py: 'write_file' is a built-in tool, and a file cannot take its place" in told


def test_a_tool_that_is_not_there_is_told_with_the_nearest_one_and_where_to_put_it() -> None:
    told = told_missing("ada", ["write_fil", ""], ())
    assert "provided: write_fil, ''. Did you mean write_file? `whisperer tools` shows" in told
    assert ".whisperer/tools" in told
