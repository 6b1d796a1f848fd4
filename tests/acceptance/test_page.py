"""The page as the server and the package give it: complete, small, sealed, and with a way in."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import webbrowser
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.cli.main import main
from ai_whisperer.server.page import document
from ai_whisperer.settings import Settings
from tests.acceptance.raw_socket import Response, fetch
from tests.acceptance.server_in_thread import ALICE, ServerInThread

ROOT = Path(__file__).parents[2]
LARGEST_MAIN_CHUNK = 200_000
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    with ServerInThread(Settings(data=tmp_path_factory.mktemp("page"), port=0, tokens={"alice": ALICE})) as running:
        yield running


def files_of(page: bytes) -> set[str]:
    return {found.decode() for found in re.findall(rb'(?:src|href)="(/[^"]+)"', page)}


def test_the_page_is_at_every_address_that_it_knows(server: ServerInThread) -> None:
    pages = [fetch(server.port, path, token=ALICE) for path in ("/", "/sessions", "/s/a", "/s/a/agents/b?tab=tasks")]
    assert {page.body for page in pages} == {document()}
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}


def test_everything_that_the_page_names_is_there_and_of_the_right_kind(server: ServerInThread) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    names = files_of(document())
    assert {Path(name).suffix for name in names} == kinds.keys()
    for name in names:
        answer = fetch(server.port, name, token=ALICE)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kinds[Path(name).suffix])


def test_no_other_file_can_be_had(server: ServerInThread) -> None:
    for path in ("/assets/", "/assets/..", "/assets/../index.html", "/assets/%2e%2e/index.html", "/index.html"):
        assert fetch(server.port, path, token=ALICE).status == 404


@pytest.mark.parametrize("name", ["x" * 5_000, "%00", "a%0Ab"])
def test_a_name_that_no_file_can_have_is_one_that_is_not_there(server: ServerInThread, name: str) -> None:
    assert fetch(server.port, f"/assets/{name}", token=ALICE).status == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/", 405), ("DELETE", "/assets/x", 405), ("GET", "/s", 307), ("GET", "/sessions/", 307)],
)
def test_every_answer_is_sealed_whoever_gives_it(server: ServerInThread, method: str, path: str, status: int) -> None:
    answer = fetch(server.port, path, method=method, token=ALICE)
    assert answer.status == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"


def test_the_main_chunk_is_small() -> None:
    scripts = re.findall(rb'(?:src|href)="(/[^"]+[.]js)"', document())
    assert scripts
    size = sum(len(gzip.compress((ROOT / "ai_whisperer/web" / name.decode()[1:]).read_bytes())) for name in scripts)
    assert size <= LARGEST_MAIN_CHUNK


def test_the_page_names_no_other_host() -> None:
    assert b"//" not in document().replace(b"<!doctype", b"")


def refusal(server: ServerInThread, path: str) -> Response:
    return fetch(server.port, path, headers=BROWSER)


@pytest.mark.parametrize(
    ("path", "said"), [("/", "A token is needed."), ("/s/default?token=wrong", "The token is wrong.")]
)
def test_a_browser_without_the_right_token_is_told_how_to_get_in(server: ServerInThread, path: str, said: str) -> None:
    answer = refusal(server, path)
    assert answer.status == 401
    assert answer.headers["content-type"].startswith("text/html")
    for words in (said, "whisperer serve", "whisperer page", '<input name="token"'):
        assert words in answer.text
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "form-action 'self'" in answer.headers["content-security-policy"]


def test_whoever_gives_the_token_is_led_to_what_was_asked_for(server: ServerInThread) -> None:
    answer = refusal(server, "/s/default/agents/a%20b?tab=mail&mail=1&tab=x&token=wrong&q=%22%3E%3Cscript%3E")
    assert "<form method" in answer.text  # without an action it leads to the address that was asked for
    kept = re.findall('<input type="hidden" name="([^"]*)" value="([^"]*)">', answer.text)
    assert kept == [("tab", "mail"), ("mail", "1"), ("tab", "x"), ("q", "&quot;&gt;&lt;script&gt;")]
    assert "wrong&" not in answer.text


def test_what_a_stranger_sends_is_text_on_the_page_that_refuses_it(server: ServerInThread) -> None:
    answer = fetch(server.port, "/", headers={**BROWSER, "Host": "<script>alert(1)</script>"})
    assert answer.status == 421
    assert "<script" not in answer.text
    assert "&lt;script&gt;" in answer.text


def test_a_program_without_a_token_is_told_in_a_line(server: ServerInThread) -> None:
    answer = fetch(server.port, "/")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.count("\n") == 1


def test_the_command_line_tells_the_address_of_the_page(
    server: ServerInThread, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{server.port}"
    assert main(["page", "--url", url, "--token", ALICE, "--session", "a b"]) == 0
    assert capsys.readouterr().out == f"{url}/s/a%20b?token={ALICE}\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ws://h:9", f"http://h:9/?token={ALICE}"),
        ("wss://h:9/ws", f"https://h:9/?token={ALICE}"),
        ("http://[::1]:9/?token=another#x", f"http://[::1]:9/?token={ALICE}"),
    ],
)
def test_every_address_of_a_server_is_told_as_one_for_a_browser(
    given: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["page", "--url", given, "--token", ALICE]) == 0
    assert capsys.readouterr().out == f"{told}\n"


def test_each_of_several_nodes_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["page", "--url", "http://10.0.0.5:1,https://b.example:2/", "--token", "t"]) == 0
    assert capsys.readouterr().out.split() == ["http://10.0.0.5:1/?token=t", "https://b.example:2/?token=t"]
    assert main(["page", "--url", "http://10.0.0.5:1,https://b.example:2/", "--token", "t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "page": "http://10.0.0.5:1/?token=t",
        "others": ["https://b.example:2/?token=t"],
    }


def test_an_address_at_which_no_page_can_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["page", "--url", "http://h:9/some/where", "--token", ALICE]) != 0
    answer = capsys.readouterr()
    assert answer.out == ""
    assert "whisperer serve" in answer.err


def test_a_browser_is_led_to_the_page_without_showing_the_token_to_others(
    server: ServerInThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def browse(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    url = f"http://127.0.0.1:{server.port}"
    for session in ("a", "b"):
        assert (
            main(["page", "--open", "--url", url, "--token", ALICE, "--session", session, "--data", str(tmp_path)]) == 0
        )
    assert ALICE not in "".join(opened)
    door = Path(opened[-1].removeprefix("file://"))
    assert door.stat().st_mode & 0o777 == 0o600
    assert f'url={url}/s/b?token={ALICE}"' in door.read_text()
    assert capsys.readouterr().err == ""


def test_without_a_server_the_command_line_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["page", "--data", str(tmp_path)]) == 1
    assert "whisperer serve" in capsys.readouterr().err


def test_the_wheel_has_the_page_in_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {f"ai_whisperer/web{name}" for name in files_of(document())} <= names
