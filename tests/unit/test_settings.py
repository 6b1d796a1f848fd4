"""Settings: one definition, four places that they can come from, and errors that name the place."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ai_whisperer.errors import InvalidInputError, SettingsError
from ai_whisperer.secrets import redacted
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import FIELDS, LoadedSettings, Settings

ROOT = Path(__file__).parents[2]


def load(
    folder: Path,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    toml: str | bytes | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    if toml is not None:
        (folder / "whisperer.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return load_settings(flags or {}, environment=environment or {}, folder=folder, file=file)


def complaint(folder: Path, **given: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, **given)
    assert caught.value.code == "invalid_settings"
    assert isinstance(caught.value, InvalidInputError)
    assert caught.value.__cause__ is None or not isinstance(caught.value.__cause__, msgspec.ValidationError)
    return caught.value.message


def test_nothing_given_means_the_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.values == msgspec.structs.replace(Settings(), data=tmp_path / ".whisperer")
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.file is None
    assert (loaded.values.host, loaded.values.port, loaded.values.session) == ("127.0.0.1", 8642, "default")


def test_flags_win_over_the_environment_over_the_file_over_defaults(tmp_path: Path) -> None:
    toml = 'port = 1\nhost = "file"\nsession = "file"\n'
    environment = {"WHISPERER_PORT": "2", "WHISPERER_HOST": "environment"}
    loaded = load(tmp_path, flags={"port": 3}, environment=environment, toml=toml)
    values = loaded.values
    assert (values.port, values.host, values.session, values.log_level) == (3, "environment", "file", "info")
    sources = [loaded.sources[name] for name in ("port", "host", "session", "log_level")]
    assert sources == ["flag --port", "environment WHISPERER_HOST", "whisperer.toml", "default"]
    assert loaded.file == tmp_path / "whisperer.toml"


def test_a_flag_that_was_not_given_and_an_empty_variable_count_for_nothing(tmp_path: Path) -> None:
    flags: dict[str, Any] = {"port": None, "templates": [], "allowed_hosts": ()}
    loaded = load(tmp_path, flags=flags, environment={"WHISPERER_MODEL": " "}, toml="port = 1")
    assert loaded.values.port == 1
    assert loaded.values.model is None
    assert loaded.sources["templates"] == "default"


def test_a_flag_of_zero_is_given(tmp_path: Path) -> None:
    assert load(tmp_path, flags={"port": 0}, toml="port = 1").values.port == 0


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_setting_is_described_and_can_be_set_in_the_environment(tmp_path: Path, field: Any) -> None:
    assert re.fullmatch(r"[A-Z][^\n]{10,}\.", field.description)
    texts = {
        "port": "7",
        "log_level": "DEBUG",
        "url": "ws://h:1/ws",
        "store": "postgresql://h/d",
        "advertise": "http://h:1",
        "tokens": "a=b",
        "limits": "max_tokens=5",
        "mcp": '{"a": {"command": "b"}}',
        "sandbox": "rlimits",
        "event_loop": "uvloop",
        "folders": "a=b",
        "create_missing": "no",
        "prune_older_than": "12h",
    }
    text = texts.get(field.name, "12")
    partner = {"tls_key": "TLS_CERTIFICATE", "tls_certificate": "TLS_KEY"}.get(field.name)
    environment = {field.variable: text} | ({f"WHISPERER_{partner}": "x.pem"} if partner else {})
    loaded = load(tmp_path, environment=environment)
    assert loaded.sources[field.name] == f"environment {field.variable}"
    assert getattr(loaded.values, field.name) != getattr(load(tmp_path).values, field.name)


def test_lists_are_written_in_each_place_as_is_usual_there(tmp_path: Path) -> None:
    environment = {
        "WHISPERER_TEMPLATES": f"one{os.pathsep}/two",
        "WHISPERER_ALLOWED_HOSTS": "a.example, b.example:1",
    }
    values = load(tmp_path, environment=environment).values
    assert values.templates == (tmp_path / "one", Path("/two"))
    assert values.allowed_hosts == ("a.example", "b.example:1")
    assert load(tmp_path, toml='templates = "one"').values.templates == (tmp_path / "one",)
    assert load(tmp_path, toml='allowed_origins = ["x", "y"]').values.allowed_origins == ("x", "y")
    flags = {"templates": [Path("three"), "four"]}
    assert load(tmp_path, flags=flags).values.templates == (tmp_path / "three", tmp_path / "four")


def test_an_address_with_a_user_is_not_advertised(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"an address such as .*, without a user"):
        load(tmp_path, flags={"advertise": "https://me:word@one.example.org"})


def test_tokens_come_from_a_table_or_a_variable(tmp_path: Path) -> None:
    wanted = {"alice": "a=1", "bob": "b2"}
    assert load(tmp_path, environment={"WHISPERER_TOKENS": "alice=a=1, bob=b2"}).values.tokens == wanted
    assert load(tmp_path, toml='[tokens]\nalice = "a=1"\nbob = "b2"').values.tokens == wanted
    assert load(tmp_path, flags={"tokens": wanted}).values.tokens == wanted


def test_paths_in_a_file_are_relative_to_it_and_others_to_the_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = elsewhere / "mine.toml"
    file.write_text('data = "kept"\ntemplates = ["agents", "/abs"]\n')
    loaded = load(tmp_path, file=file, flags={"tls_key": "k.pem", "tls_certificate": Path("c.pem")})
    assert loaded.values.data == elsewhere / "kept"
    assert loaded.values.templates == (elsewhere / "agents", Path("/abs"))
    assert loaded.values.tls_key == tmp_path / "k.pem"
    assert loaded.values.tls_certificate == tmp_path / "c.pem"
    assert loaded.sources["data"] == str(file)


def test_a_tilde_means_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(tmp_path, toml='data = "~/kept"').values.data == Path("/home/ada/kept")


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"flags": {"port": 65536}}, ["setting port", "flag --port", "65536", "a whole number from 0 to 65535"]),
        ({"environment": {"WHISPERER_PORT": "many"}}, ["port", "environment WHISPERER_PORT", "'many'", "whole number"]),
        ({"toml": 'host = "h"\nport = "8642"'}, ["setting port", "whisperer.toml, line 2", "'8642'", "whole number"]),
        ({"toml": "port = true"}, ["setting port", "True"]),
        ({"toml": "port = 1.5"}, ["setting port", "1.5"]),
        ({"flags": {"max_batch": 0}}, ["max_batch", "--max-batch", "a whole number of at least 1"]),
        ({"toml": "slow_client_seconds = 0"}, ["slow_client_seconds", "a number above 0 and up to 86,400"]),
        ({"toml": "slow_client_seconds = inf"}, ["slow_client_seconds", "inf"]),
        ({"environment": {"WHISPERER_SHUTDOWN_GRACE_SECONDS": "nan"}}, ["shutdown_grace_seconds", "from 0 to 86400"]),
        ({"environment": {"WHISPERER_LOG_LEVEL": "loud"}}, ["log_level", "one of debug, error, info, warning"]),
        ({"toml": 'url = "127.0.0.1:8642"'}, ["setting url", "an address such as ws://"]),
        ({"toml": 'data = ""'}, ["setting data", "a path"]),
        ({"toml": "templates = [1]"}, ["setting templates", "a list of folders"]),
        ({"toml": "allowed_hosts = 1"}, ["setting allowed_hosts", "a list of texts"]),
        ({"toml": "session = 1"}, ["setting session", "text that is not empty"]),
        ({"toml": f'model = "{"x" * 500}"\nhost = "{"a b" * 500}"'}, ["setting host", "a ba b", "…"]),
    ],
)
def test_a_bad_value_is_told_with_its_place_and_what_is_expected(
    tmp_path: Path, given: dict[str, Any], parts: list[str]
) -> None:
    message = complaint(tmp_path, **given)
    assert [part for part in parts if part not in message] == []
    assert len(message) < 400


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"toml": "\nprot = 1"}, ["'prot' of whisperer.toml, line 2", "Did you mean port?"]),
        ({"toml": "log-level = 'info'"}, ["'log-level'", "Did you mean log_level?"]),
        (
            {"toml": "[serving]\nport = 1"},
            ["'serving' of whisperer.toml, line 1", "Known are: data, store, store_patience_seconds, work, node"],
        ),
        ({"toml": "[limits]\nmax_steps = 4"}, ["whisperer.toml, line 2", "Did you mean max_steps_per_task?"]),
        ({"environment": {"WHISPERER_TOKN": "x"}}, ["WHISPERER_TOKN", "Did you mean WHISPERER_TOKEN?"]),
        ({"flags": {"max_bach": 1}}, ["--max-bach", "Did you mean --max-batch?"]),
    ],
)
def test_an_unknown_name_is_refused_with_the_one_that_may_be_meant(
    tmp_path: Path, given: dict[str, Any], parts: list[str]
) -> None:
    message = complaint(tmp_path, **given)
    assert [part for part in parts if part not in message] == []


def test_variables_of_other_uses_are_left_alone(tmp_path: Path) -> None:
    used = re.compile(r"""environ(?:\.get\(|\[)\s*["'](WHISPERER_\w+)""")
    files = [path for folder in ("ai_whisperer", "tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    names = {name for path in files for name in used.findall(path.read_text(encoding="utf-8"))}
    assert {"WHISPERER_HOME", "WHISPERER_CRASH_RUNS", "WHISPERER_SIMULATION_SEEDS"} <= names
    load(tmp_path, environment={**dict.fromkeys(names - {field.variable for field in FIELDS}, "1"), "PATH": "/bin"})


@pytest.mark.parametrize(
    ("toml", "part"),
    [
        ("port = 1\nhost = ", "line 2"),
        ("port = 1\nport = 2", "line 2"),
        (b"host = '\xff'", "not UTF-8"),
        ("templates = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_a_malformed_file_is_told_with_its_line(tmp_path: Path, toml: str | bytes, part: str) -> None:
    message = complaint(tmp_path, toml=toml)
    assert "whisperer.toml" in message
    assert part in message


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, toml=b"\xef\xbb\xbfport = 1").values.port == 1


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    assert "no settings file" in complaint(tmp_path, file=tmp_path / "absent.toml")
    (tmp_path / "whisperer.toml").mkdir()
    assert "cannot be read" in complaint(tmp_path)


def test_a_certificate_without_a_key_is_refused(tmp_path: Path) -> None:
    message = complaint(tmp_path, toml='tls_certificate = "c.pem"')
    assert "tls_certificate (whisperer.toml, line 1) needs tls_key" in message
    assert "tls_key (flag --tls-key) needs tls_certificate" in complaint(
        tmp_path, toml="", flags={"tls_key": Path("k.pem")}
    )


@pytest.mark.parametrize(
    "given",
    [
        {"environment": {"WHISPERER_TOKEN": "canary with spaces"}},
        {"toml": 'token = ["canary"]'},
        {"environment": {"WHISPERER_TOKENS": "canary-without-name"}},
        {"environment": {"WHISPERER_TOKENS": "a=canary,a=canary2"}},
        {"environment": {"WHISPERER_TOKENS": "a=canary,b=canary"}},
        {"toml": '[tokens]\na = "canary é"'},
        {"toml": '[tokens]\n"not a name" = "canary"'},
    ],
)
def test_a_bad_token_is_refused_and_not_repeated(tmp_path: Path, given: dict[str, Any]) -> None:
    message = complaint(tmp_path, **given)
    assert "setting token" in message
    assert "canary" not in message


def test_what_is_shown_hides_secrets_and_tells_the_source(tmp_path: Path) -> None:
    flags = {"token": "canary-one", "tokens": {"alice": "canary-two"}, "templates": [Path("/t")]}
    loaded = load(tmp_path, flags=flags)
    shown = {setting.name: setting for setting in loaded.shown()}
    assert list(shown) == list(Settings.__struct_fields__)
    assert (shown["token"].value, shown["token"].source) == ("[secret]", "flag --token")
    assert shown["tokens"].value == {"alice": "[secret]"}
    assert shown["templates"].value == ["/t"]
    assert shown["model"].value is None
    assert shown["port"].description.startswith("Port that")
    assert b"canary" not in msgspec.json.encode(loaded.shown())
    assert "canary" not in repr(loaded)
    assert "port=8642" in repr(loaded)


def test_nobody_else_can_be_the_local_principal(tmp_path: Path) -> None:
    message = complaint(tmp_path, toml='port = 1\n[tokens]\nlocal = "canary-of-a-file-3"')
    assert message.startswith("The setting tokens (whisperer.toml, line 2) has a token for 'local'")
    assert "canary" not in message


def test_tokens_that_were_read_are_secrets_everywhere_from_then_on(tmp_path: Path) -> None:
    load(tmp_path, toml='token = "canary-of-a-file-1"\n[tokens]\nada = "canary-of-a-file-2"')
    assert redacted("canary-of-a-file-1 canary-of-a-file-2") == "[secret] [secret]"


def test_the_token_in_an_address_is_not_shown(tmp_path: Path) -> None:
    loaded = load(tmp_path, environment={"WHISPERER_URL": "ws://127.0.0.1:1/ws?token=canary-7"})
    assert loaded.values.url == "ws://127.0.0.1:1/ws?token=canary-7"
    assert next(each.value for each in loaded.shown() if each.name == "url") == "ws://127.0.0.1:1/ws?token=[secret]"
    assert "canary" not in complaint(tmp_path, environment={"WHISPERER_URL": "127.0.0.1:1/ws?token=canary-7"})
