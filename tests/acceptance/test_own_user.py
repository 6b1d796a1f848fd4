"""`whisperer serve --user`: a server that is started by root becomes somebody else before it does anything."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.errors import SettingsError
from ai_whisperer.server import own_user

USER = "nobody"
WITHOUT_ROOT = "only root can become another user"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can go into; those of tests are the user's own."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


def served(data: Path, *flags: str, home: Path) -> tuple[str, str, int]:
    """Start a server and end it when it is ready; its output, what it said, and the user that it ran as."""
    main = "from ai_whisperer.cli.main import main; raise SystemExit(main())"
    program = [sys.executable, "-c", main, "serve", "--data", str(data), "--port", "0", *flags]
    environment = {**os.environ, "WHISPERER_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home, env=environment
    ) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        user = os.stat(f"/proc/{server.pid}").st_uid if ready else -1
        server.terminate()
        return ready, server.communicate()[1], user


def is_readable_by_all(path: Path) -> bool:
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (path, *path.parents))


def test_a_server_started_by_root_runs_as_the_user_that_is_named(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(WITHOUT_ROOT)
    data = folder / "data"
    ready, said, user = served(data, "--user", USER, home=folder)
    if not all(map(is_readable_by_all, (Path(own_user.__file__).parent, Path(os.__file__).parent))):
        assert "cannot read this program" in said
        return
    assert ready.startswith("ready "), said
    assert "runs as root" not in said
    assert user == data.stat().st_uid == (data / "whisperer.db").stat().st_uid == pwd.getpwnam(USER).pw_uid


def test_a_server_that_stays_root_says_so(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(WITHOUT_ROOT)
    ready, said, user = served(folder / "data", home=folder)
    assert ready.startswith("ready "), said
    assert "This server runs as root" in said
    assert "This server runs as root" in (folder / "data/logs/server.log").read_text()
    assert user == 0


def test_a_data_folder_of_somebody_else_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_user, "is_root", lambda: True)
    monkeypatch.setattr(os, "setresuid", lambda *_: pytest.fail("it became somebody"))
    monkeypatch.setattr(os, "initgroups", lambda *_: pytest.fail("it became somebody"))
    (folder / "data").mkdir()
    if os.geteuid() == pwd.getpwnam(USER).pw_uid:
        pytest.skip("this is that user")
    with pytest.raises(SettingsError, match=f"chown -R {USER}"):
        own_user.become(USER, folder / "data")


@pytest.mark.parametrize(
    ("name", "euid", "told"),
    [("no-such-user", 0, "There is no user"), ("root", 0, "Name another user"), (USER, 1000, "Only root can")],
)
def test_a_user_that_it_cannot_become_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, euid: int, told: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setattr(os, "initgroups", lambda *_: pytest.fail("it became somebody"))
    monkeypatch.setattr(os, "setresuid", lambda *_: pytest.fail("it became somebody"))
    with pytest.raises(SettingsError, match=told):
        own_user.become(name, folder / "data")


def test_who_is_that_user_already_stays(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root is not to stay root")
    own_user.become(pwd.getpwuid(os.geteuid()).pw_name, folder / "data")
    assert not (folder / "data").exists()


def test_the_doctor_looks_as_the_user_that_the_server_would_be(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(WITHOUT_ROOT)
    main = "from ai_whisperer.cli.main import main; raise SystemExit(main())"
    program = [sys.executable, "-c", main, "doctor", "--data", str(folder / "data"), "--port", "0", "--json"]
    environment = {**os.environ, "WHISPERER_HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}

    def found(*flags: str) -> dict[str, str]:
        ran = subprocess.run(
            [*program, *flags], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
        )
        (user,) = [each for each in json.loads(ran.stdout)["checks"] if each["check"] == "User"]
        return dict(user)

    as_nobody = found("--user", USER)
    if all(map(is_readable_by_all, (Path(own_user.__file__).parent, Path(os.__file__).parent))):
        assert as_nobody == {"check": "User", "level": "ok", "found": f"{USER}, as set", "advice": ""}
    else:
        assert (as_nobody["level"], "cannot read this program" in as_nobody["advice"]) == ("problem", True)
    assert found("--user", "no-such-user")["level"] == "problem"
    assert found()["found"] == "root"
    assert not (folder / "data").exists(), "looking makes nothing"
