"""Every code block of the README and of the docs is run, and what is made from the code is up to date.

A page is a story: its blocks are run in order, in one folder. What a block is for stands behind its language:

    python            a program, run as it is; `python notebook` are cells, with `# %%` between, that may await
    sh                commands; `sh background` is a command that goes on: a server, until it says that it is ready
    X file=NAME       the content of a file
    json              a request to the server that the page has started, or a value
    text              no code: what is printed, or a picture
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from websockets.sync.client import connect

import ai_whisperer
from ai_whisperer import scripting
from tests.cluster.ray_stage import WHY_NOT, is_installed, running_ray

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[ ]*(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUNS_ITSELF = {"make demo", "make test", "make bench", "make soak", "make docs", "make demo-cluster"}
"""What is run elsewhere: these set the machine up, or take long."""


NOTEBOOK = """
import ast, asyncio, inspect

async def main():
    names = {{"__name__": "__main__"}}
    for cell in {cells!r}:
        outcome = eval(compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.isawaitable(outcome):
            await outcome

asyncio.run(main())
"""
"""A notebook: its event loop runs from the first cell to the last."""


class Block(NamedTuple):
    language: str
    purpose: str
    text: str
    line: int


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1)


class Story:
    """The folder in which a page is played."""

    def __init__(self, folder: Path, commands: Path) -> None:
        self.folder = folder
        self.background: list[subprocess.Popen[str]] = []
        self.address = ""
        places = (commands, Path(sys.executable).parent, ROOT / "ui/node_modules/.bin", os.environ["PATH"])
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))},
            "PATH": os.pathsep.join(map(str, places)),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'examples'}",
            "WHISPERER_PORT": "0",
            "HOME": str(folder),
            "COLUMNS": "120",
            # Plugins of what our own tests need load for longer than a page's tests take.
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:langsmith_plugin",
        }

    def play(self, block: Block) -> None:
        if block.purpose.startswith("file="):
            path = self.folder / block.purpose.removeprefix("file=")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            program = NOTEBOOK.format(cells=block.text.split("# %%\n")) if block.purpose == "notebook" else block.text
            self.run([sys.executable, "-W", "error", "-c", program])
        elif block.language == "sh" and block.purpose == "background":
            self.start(block.text)
        elif block.language == "sh":
            commands = [line for line in block.text.splitlines() if line.partition("#")[0].strip() not in RUNS_ITSELF]
            self.run(["bash", "-e", "-c", "\n".join(commands)])
        elif block.language == "json":
            self.send(block.text)
        else:
            raise AssertionError(f"no block may be left untried, but nobody knows how to run {block.language!r}")

    def run(self, command: list[str]) -> None:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            stdin=subprocess.DEVNULL,
        )
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"

    def start(self, command: str) -> None:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.background.append(process)
        assert process.stdout is not None
        word, _, page = process.stdout.readline().strip().partition(" ")
        assert word == "ready"
        self.address = page.replace("http:", "ws:").replace("/?", "/ws?")

    def send(self, text: str) -> None:
        """Check that it is JSON; if it is a request, send it to the server."""
        value = msgspec.json.decode(text)
        if "method" in value:
            with connect(self.address, proxy=None) as socket:
                socket.send(text)
                while (answer := msgspec.json.decode(socket.recv(timeout=60))).get("id") != value["id"]:
                    pass
            assert "result" in answer, answer

    def end(self) -> list[int]:
        """End what goes on, and tell how it ended."""
        codes = []
        for process in self.background:
            process.terminate()
            codes.append(process.wait(timeout=60))
            if process.stdout is not None:
                process.stdout.close()
        return codes


def play(
    page: Path,
    blocks: Iterable[Block],
    folder: Path,
    commands: Path,
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    story = Story(folder, commands)
    story.environment |= environment or {}
    try:
        for block in blocks:
            try:
                story.play(block)
            except AssertionError as failure:
                raise AssertionError(f"{page.name}, line {block.line}: {failure}") from None
    finally:
        codes = story.end()
    assert codes == [0] * len(codes)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, commands: Path, request: pytest.FixtureRequest
) -> None:
    blocks = [block for block in blocks_of(page) if block.language != "text"]
    is_of_postgresql = any("$DATABASE" in block.text for block in blocks)
    database = request.getfixturevalue("database") if is_of_postgresql else ""
    with ExitStack() as stack:
        environment = {"DATABASE": database}
        if any("$RAY" in block.text for block in blocks):
            if not is_installed():
                pytest.skip(WHY_NOT)
            ray = stack.enter_context(running_ray(1))
            environment |= {**ray.environment, "RAY": ray.address}
        play(page, blocks, tmp_path, commands, environment=environment)


def is_program(block: Block) -> bool:
    return block.language == "python" and block.purpose in ("", "notebook")


def is_needed_by_programs(block: Block) -> bool:
    """What a reader of the programs alone has: files, and a server."""
    return block.purpose.startswith("file=") or block.purpose == "background"


def has_programs_after_commands(page: Path) -> bool:
    """Whether a program may rely on commands that stand before it. On all other pages the whole page shows as much."""
    blocks = [block for block in blocks_of(page) if block.language != "text"]
    last = max((number for number, block in enumerate(blocks) if is_program(block)), default=0)
    return not all(is_program(block) or is_needed_by_programs(block) for block in blocks[:last])


@pytest.mark.parametrize(
    "page", [page for page in PAGES if has_programs_after_commands(page)], ids=lambda page: page.name
)
def test_the_programs_of_the_page_run_for_a_reader_who_did_not_try_the_rest(
    page: Path, tmp_path: Path, commands: Path
) -> None:
    blocks = (block for block in blocks_of(page) if is_program(block) or is_needed_by_programs(block))
    play(page, blocks, tmp_path, commands)


def files_that_nobody_runs(page: Path) -> list[str]:
    """Programs on the page that stand in a file and are neither run nor loaded by anything on it."""
    commands = " ".join(block.text for block in blocks_of(page) if block.language in ("sh", "conversation"))
    files = [block.purpose.removeprefix("file=") for block in blocks_of(page) if "file=" in block.purpose]
    files = [name for name in files if name.endswith(".py")]
    return [name for name in files if not name.startswith(".whisperer/tools/") and name not in commands]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_program_that_stands_in_a_file_is_run(page: Path) -> None:
    assert files_that_nobody_runs(page) == []


def test_a_block_that_fails_is_found(tmp_path: Path, commands: Path) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        Story(tmp_path, commands).play(Block("python", "", "1 / 0", 1))
    with pytest.raises(AssertionError, match="nobody knows how"):
        Story(tmp_path, commands).play(Block("cobol", "", "", 1))


def test_the_python_page_has_every_name_that_can_be_imported_and_defaults_as_they_are_written() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    titles = re.findall(r"^##+ `?([\w.]+)", page, re.MULTILINE)
    of_scripts = {name for name in scripting.__all__ if getattr(ai_whisperer, name, None) is getattr(scripting, name)}
    assert set(ai_whisperer.__all__) - of_scripts <= set(titles)
    functions = {name for name in scripting.__all__ if inspect.isfunction(getattr(scripting, name))}
    assert {f"scripting.{name}" for name in functions} <= set(titles)
    assert "AsyncAgentSessionManager(data: str | Path | None = None, *, session_id: str = " in page
    assert "priority: Priority | str = Priority.NORMAL" in page
    assert not re.search(r"<\w+\.\w+", page)


def test_the_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, text in generate.pages().items():
        kept = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert kept == text.rstrip() + "\n", f"docs/{name} is out of date: run `make docs`"
