"""Reading, listing and searching: what a model can see, and what it is told about what it cannot."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ai_whisperer.errors import NoSandboxError, SandboxError, ToolArgumentsError, ToolError
from ai_whisperer.sandbox.base import Job, Outcome
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.levels import ALL
from ai_whisperer.tools.files import searcher
from ai_whisperer.tools.files.searcher import translated
from ai_whisperer.tools.machine import MACHINE_TOOLS
from tests.simulation.stage import until
from tests.unit.file_stage import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_is_read_with_its_version(desk: Desk) -> None:
    (desk.own / "plan.md").write_text("one\ntwo\n")
    told = desk.use("read_file", path="plan.md")
    heading, _, text = told.partition("\n")
    assert heading.startswith("[plan.md: lines 1-2; 8 bytes; 2 lines in all, version ")
    assert text == "one\ntwo\n"


@pytest.mark.parametrize(("content", "told"), [("", "empty; 0 bytes"), ("no end", "lines 1-1; 6 bytes")])
def test_a_file_without_a_last_line_end_is_read(desk: Desk, content: str, told: str) -> None:
    (desk.own / "f").write_text(content)
    heading, _, text = desk.use("read_file", path="f").partition("\n")
    assert told in heading
    assert text == content


def test_a_file_is_read_in_parts(desk: Desk) -> None:
    (desk.own / "f").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    heading, _, text = desk.use("read_file", path="f", first_line=11, lines=2).partition("\n")
    assert text == "line 11\nline 12\n"
    assert "lines 11-12" in heading
    assert "continue with first_line=13" in heading
    assert "continue with" not in desk.use("read_file", path="f", first_line=99).partition("\n")[0]
    assert desk.refused("read_file", path="f", first_line=101) == "'f' has only 100 lines. Ask for one of them."


def test_a_result_ends_with_a_whole_line_where_the_limit_is_reached(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_result_bytes=1000)
    (desk.own / "f").write_text("".join(f"{n:09}\n" for n in range(1, 101)))
    heading, _, text = desk.use("read_file", path="f").partition("\n")
    assert text.endswith("000000040\n")
    assert "continue with first_line=41" in heading


def test_a_line_that_is_longer_than_a_result_is_cut_at_a_character(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_result_bytes=1001)
    (desk.own / "f").write_text("é" * 1000)
    heading, _, text = desk.use("read_file", path="f").partition("\n")
    assert set(text) == {"é"}
    assert "line 1 is cut" in heading


def test_a_huge_file_is_read_in_parts_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_file_bytes=1000)
    (desk.own / "f").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    heading, _, text = desk.use("read_file", path="f", first_line=500, lines=1).partition("\n")
    assert text == "line 500\n"
    assert "too large for a version" in heading
    assert "cannot be edited" in desk.refused("edit_file", path="f", old="line 1\n", new="x")


def test_a_sparse_file_of_a_gigabyte_is_told_apart_from_text(desk: Desk) -> None:
    with (desk.own / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert "binary" in desk.refused("read_file", path="sparse")
    assert "1,073,741,824 bytes" in desk.refused("read_file", path="sparse")
    assert "1 files are too large" in desk.use("search_files", pattern="x")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image, 8 bytes"),
        (b"caf\xe9\n", "byte 0xE9 in line 1"),
        (b"ok\nok\ncaf\xe9\n", "byte 0xE9 in line 3"),
        ("text".encode("utf-16"), "iconv -f UTF-16"),
        (b"a\0b", "binary"),
    ],
)
def test_what_is_no_text_is_named_with_a_way_out(desk: Desk, content: bytes, told: str) -> None:
    (desk.own / "f").write_bytes(content)
    for complaint in (desk.refused("read_file", path="f"), desk.refused("edit_file", path="f", old="a", new="b")):
        assert told in complaint
        assert "Convert a copy" in complaint


def test_a_mark_of_utf8_at_the_beginning_is_not_shown(desk: Desk) -> None:
    (desk.own / "f").write_bytes(b"\xef\xbb\xbfhello")
    assert desk.use("read_file", path="f").endswith("]\nhello")


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "shared/../../outside/secret.txt",
        "a/../../outside/secret.txt",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "//etc/passwd",
        "link",
        "chain",
        "folder/secret.txt",
        "shared/link",
        "shared/folder/secret.txt",
        "library/link",
        "proc/root/etc/passwd",
        "..",
        "nul\0byte",
        "n" * 300,
        "d/" * 3000 + "f",
        "",
        "\n",
        "missing",
        "shared",
    ],
)
def test_no_path_leads_out(desk: Desk, path: str) -> None:
    for inside in (desk.own, desk.shared, desk.library):
        (inside / "link").symlink_to(desk.secret)
        (inside / "folder").symlink_to("../outside")
        (inside / "proc").symlink_to("/proc/self")
    (desk.own / "chain").symlink_to("link")
    before = {each: each.lstat().st_mtime_ns for each in desk.root.rglob("*") if each.is_file()}
    assert len(desk.refused("read_file", path=path)) > 20
    if path not in ("", "missing", "\n"):
        desk.refused("edit_file", path=path, old="canary", new="x")
        desk.refused("write_file", path=path, content="x")
    assert {each: each.lstat().st_mtime_ns for each in desk.root.rglob("*") if each.is_file()} == before
    assert desk.drafts() == []


def test_links_that_stay_in_the_own_folder_are_followed_for_reading_only_there(desk: Desk) -> None:
    for folder in (desk.own, desk.shared):
        (folder / "real").write_text("text")
        (folder / "link").symlink_to("real")
    assert desk.use("read_file", path="link").endswith("text")
    assert "symbolic link" in desk.refused("read_file", path="shared/link")
    assert "symbolic link" in desk.refused("write_file", path="link", content="x")


def test_a_granted_folder_is_not_reached_through_its_link(desk: Desk) -> None:
    """The own folder has a link of that name for commands; the tools go by the name."""
    (desk.library / "book").write_text("text")
    (desk.own / "library").unlink()
    (desk.own / "library").symlink_to(desk.outside)
    assert desk.use("read_file", path="library/book").endswith("text")


def test_what_is_no_plain_file_is_refused_at_once(desk: Desk) -> None:
    os.mkfifo(desk.own / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(desk.own)  # the path of a socket is short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket", "shared", "."):
            assert "list_directory" in (told := desk.refused("read_file", path=name)) or "plain file" in told
            desk.refused("write_file", path=name, content="x")
            desk.refused("edit_file", path=name, old="a", new="b")
        listed = desk.use("list_directory")
    assert "pipe  (pipe)" in listed
    assert "socket  (socket)" in listed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(desk: Desk) -> None:
    try:
        os.mknod(desk.own / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not even root may here")
    assert "a device" in desk.refused("read_file", path="zero")
    assert "a device" in desk.refused("write_file", path="zero", content="x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_told(desk: Desk) -> None:
    (desk.own / "f").write_text("x")
    (desk.own / "f").chmod(0)
    assert "does not allow" in desk.refused("read_file", path="f")


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(desk: Desk) -> None:
    """Whoever reads has the old content or the new one."""
    contents = {letter * 300_000 for letter in "ab"}
    desk.use("write_file", path="f", content="a" * 300_000)

    async def both() -> list[str]:
        writing = [asyncio.create_task(desk.call("write_file", path="f", content=each * 300_000)) for each in "ab" * 5]
        read = [await desk.call("read_file", path="f") for _ in range(30)]
        await asyncio.gather(*writing)
        return read

    assert {told.partition("\n")[2] for told in asyncio.run(both())} <= contents


def test_a_folder_is_listed_with_the_granted_ones_at_the_top(desk: Desk) -> None:
    (desk.own / "docs").mkdir()
    (desk.own / "docs" / "deep.txt").write_text("12345")
    (desk.own / "a.txt").write_text("x" * 1234)
    (desk.own / "z").symlink_to("a.txt")
    assert desk.use("list_directory").split("\n") == [
        "[.: 5 entries.]",
        "shared/  (a granted folder, for reading and writing)",
        "library/  (a granted folder, for reading)",
        "a.txt  1,234 bytes",
        "docs/",
        "z  (symbolic link to a.txt)",
    ]
    assert "docs/deep.txt  5 bytes" in desk.use("list_directory", depth=2)
    assert desk.use("list_directory", path="shared") == "'shared' is empty."
    assert "depth" in desk.refused("list_directory", depth=0)
    assert "used as a folder" in desk.refused("list_directory", path="a.txt")


def test_a_long_listing_is_cut_and_says_so(desk: Desk) -> None:
    for n in range(1100):
        (desk.shared / f"f{n:04}").touch()
    lines = desk.use("list_directory", path="shared").split("\n")
    assert len(lines) == 1001
    assert "The first 1,000 are shown" in lines[0]


def test_odd_names_are_written_out(desk: Desk) -> None:
    (desk.own / "two\nlines").touch()
    Path(os.fsdecode(os.fsencode(desk.own) + b"/caf\xe9")).write_text("needle")
    listed = desk.use("list_directory")
    assert "two\\nlines  0 bytes" in listed
    assert "caf\\udce9  6 bytes" in listed
    assert "caf\\udce9:1: needle" in desk.use("search_files", pattern="needle")


def test_lines_are_found_by_an_expression(desk: Desk) -> None:
    (desk.own / "src").mkdir()
    (desk.own / "src" / "a.py").write_text("import os\ndef f():\n    return 1\n")
    (desk.own / "b.txt").write_text("def g\r\n")
    (desk.own / "image").write_bytes(b"def\0")
    (desk.own / "link").symlink_to("b.txt")
    told = desk.use("search_files", pattern=r"def \w")
    assert told.split("\n") == [
        "[.: 2 matching lines; 2 text files searched; 1 files are not text]",
        "b.txt:1: def g",
        "src/a.py:2: def f():",
    ]
    assert desk.use("search_files", pattern="def", glob="*.py").count("\n") == 1
    assert desk.use("search_files", pattern="def", path="src/a.py").endswith("src/a.py:2: def f():")
    assert "0 matching lines" in desk.use("search_files", pattern="nothing")
    assert "there may be more" in desk.use("search_files", pattern="def", max_matches=1)


def test_a_granted_folder_is_searched_by_its_name(desk: Desk) -> None:
    (desk.library / "book").write_text("needle")
    assert "0 matching lines" in desk.use("search_files", pattern="needle")
    assert desk.use("search_files", pattern="needle", path="library").endswith("library/book:1: needle")


def test_a_search_does_not_leave_the_folder(desk: Desk) -> None:
    (desk.own / "out").symlink_to(desk.outside)
    assert "0 matching lines" in desk.use("search_files", pattern="canary")
    assert desk.refused("search_files", pattern="canary", path="out")
    assert desk.refused("search_files", pattern="canary", path="..")


def test_a_wrong_expression_is_told_with_its_place(desk: Desk) -> None:
    told = desk.refused("search_files", pattern="fine(broken")
    assert "missing ), unterminated subpattern" in told
    assert "begins at character 5: '(broken'" in told
    assert "not a regular expression" in desk.refused("search_files", pattern="*")
    assert "not a regular expression" in desk.refused("search_files", pattern="a{99999999999}")
    assert "at most" in desk.refused("search_files", pattern="x" * 10_001)


def test_an_expression_that_would_never_end_is_ended_and_holds_nobody_up(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_tool_seconds=0.5)
    (desk.own / "f").write_text("a" * 60 + "\n")

    async def both() -> tuple[str, int]:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        turning = asyncio.create_task(turn())
        try:
            return await desk.call("search_files", pattern="(a+)+$b"), turns
        except ToolError as error:
            return error.message, turns
        finally:
            turning.cancel()

    told, turns = asyncio.run(both())
    assert "may take 0.5 seconds" in told
    assert turns > 200


def test_a_search_that_is_cancelled_leaves_no_process(desk: Desk) -> None:
    (desk.own / "f").write_text("a" * 60 + "\n")

    def children() -> set[str]:
        return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())

    others = children()  # those of tests before, such as a process that Python itself keeps

    def has_child() -> bool:
        return bool(children() - others)

    async def run() -> None:
        searching = asyncio.create_task(desk.call("search_files", pattern="(a+)+$b"))
        await until(has_child)
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        assert not has_child()

    asyncio.run(run())


@pytest.mark.parametrize("level", ALL)
def test_a_search_runs_in_the_sandbox_of_the_session(tmp_path: Path, level: str) -> None:
    desk, hasty = Desk(tmp_path), Desk(tmp_path, max_tool_seconds=1)
    (desk.own / "f").write_text(f"needle\n{'a' * 60}\n")

    async def run() -> None:
        sandbox = ChosenSandbox(level)
        try:
            await _choose_or_skip(sandbox)
            for each in (desk, hasty):
                each.workplace = replace(each.workplace, sandbox=sandbox)
            found = await MACHINE_TOOLS["search_files"].call('{"pattern": "needle"}', desk.context())
            assert found.content.endswith("f:1: needle")
            assert found.run is not None
            assert found.run.sandbox == level
            with pytest.raises(ToolError, match="may take 1 seconds"):
                await hasty.call("search_files", pattern="(a+)+$b")
        finally:
            await sandbox.close()

    asyncio.run(run())


async def _choose_or_skip(sandbox: ChosenSandbox) -> None:
    try:
        await sandbox.choose()
    except NoSandboxError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("**", "any/thing", True),
        ("a?[0-9]", "ab1", True),
        ("a[!0-9]", "a1", False),
        ("a[", "a[", True),
        ("(x)+", "(x)+", True),
    ],
)
def test_a_glob_is_for_names_or_for_paths(glob: str, path: str, *, fits: bool) -> None:
    assert (re.fullmatch(translated(glob), path) is not None) is fits


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("read_file", {"path": 5}),
        ("read_file", {"path": "f", "nonsense": 1}),
        ("write_file", {"path": "f", "content": "x", "mode": "overwrite"}),
        ("search_files", {"pattern": None}),
    ],
)
def test_arguments_that_do_not_fit_are_told(desk: Desk, name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolArgumentsError, match="Call again"):
        desk.use(name, **arguments)


def test_a_glob_that_is_wrong_is_named_and_not_the_pattern(desk: Desk) -> None:
    told = desk.refused("search_files", pattern="a", glob="[z-a]")
    assert "The glob is not a pattern of names: bad character range z-a" in told


def test_a_pipe_is_not_searched(desk: Desk) -> None:
    os.mkfifo(desk.own / "pipe")
    assert "is a pipe" in desk.refused("search_files", pattern="a", path="pipe")


class Broken:
    """A sandbox that fails as it is told to."""

    name = "broken"

    def __init__(self, error: SandboxError) -> None:
        self._error = error

    async def run(self, job: Job, on_output: object = None) -> Outcome:  # noqa: ARG002
        raise self._error


def test_where_a_sandbox_should_hold_and_fails_nothing_is_searched(desk: Desk) -> None:
    (desk.own / "f").write_text("here")
    desk.workplace = replace(desk.workplace, sandbox=Broken(SandboxError("It broke.")))
    assert desk.refused("search_files", pattern="here") == "It broke."


def test_where_no_sandbox_holds_the_search_has_limits_and_says_so(desk: Desk) -> None:
    (desk.own / "f").write_text("here")
    desk.workplace = replace(desk.workplace, sandbox=Broken(NoSandboxError("There is none.")))
    result = asyncio.run(MACHINE_TOOLS["search_files"].call('{"pattern": "here"}', desk.context()))
    assert "f:1: here" in result.content
    assert result.run is not None
    assert result.run.sandbox == "rlimits"


def test_a_search_without_a_sandbox_has_no_more_memory_than_it_may() -> None:
    program = Path(searcher.__file__).read_text().partition("if __name__")[0]
    asked = "limit_this_process(7, 1 << 30); print(*map(resource.getrlimit, (resource.RLIMIT_CPU, resource.RLIMIT_AS)))"
    told = subprocess.run([sys.executable, "-c", f"{program}\n{asked}"], capture_output=True, text=True, check=True)
    assert told.stdout == f"(7, 7) ({1 << 30}, {1 << 30})\n"


def test_a_name_of_drafts_cannot_be_written(desk: Desk) -> None:
    for name in (".whisperer-draft-x", "a/.whisperer-draft-x"):
        assert "Choose another name" in desk.refused("write_file", path=name, content="x")
    assert desk.drafts() == []


def test_a_large_file_is_read_and_not_edited(desk: Desk) -> None:
    lines = (3 << 20) // 4
    (desk.own / "f").write_bytes("aé\n".encode() * lines)
    heading, _, text = desk.use("read_file", path="f", first_line=lines - 1).partition("\n")
    assert (text, f"{lines:,} lines in all" in heading) == ("aé\naé\n", True)
    assert "files of more than 2,097,152 cannot be edited" in desk.refused("edit_file", path="f", old="a", new="b")


def test_bytes_that_are_no_text_are_named_with_their_line_far_down_too(desk: Desk) -> None:
    (desk.own / "f").write_bytes("aé\n".encode() * 100_000 + b"\xc3(\n")
    assert "byte 0xC3 in line 100001 does not fit" in desk.refused("read_file", path="f")
    (desk.own / "f").write_bytes(b"x" * ((256 << 10) - 1) + b"\xc3(\n")
    assert "byte 0xC3 in line 1 does not fit" in desk.refused("read_file", path="f")


def test_an_edit_cannot_make_a_file_that_fills_the_memory(desk: Desk) -> None:
    (desk.own / "f").write_text("a" * 1_000_000)
    told = desk.refused("edit_file", path="f", old="a", new="b" * 1_000_000, all=True)
    assert "would have more than 2,097,152 characters" in told
