"""Where settings come from: flags over `WHISPERER_*` variables over `whisperer.toml` over defaults."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from ai_whisperer.errors import McpConfigError, SettingsError
from ai_whisperer.mcp_config import mcp_servers_from, secrets_in
from ai_whisperer.secrets import redacted, remember_secret
from ai_whisperer.setting_values import checked, from_object, from_text, reason_in_table
from ai_whisperer.settings import DEFAULT, FIELDS, LOCAL, PREFIX, Field, LoadedSettings, Settings

FILE_NAME = "whisperer.toml"

_OTHER_VARIABLES = re.compile(r"WHISPERER_(HOME|(SIMULATION|CRASH|MACHINE|TEST|BENCH)_\w+)")
"""Variables that are no settings: the user's own folder, and the sizes of test runs."""


class _Given(NamedTuple):
    """A value as it was written: `source` for people who ask where it came from, `place` for those who mend it."""

    value: Any
    read: Callable[[Any, msgspec.inspect.Type], Any]
    source: str
    place: str
    folder: Path
    text: str = ""
    """The file that it stands in."""


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a server that is given all that is set for it in another way."""
    settings = {field.variable for field in FIELDS}
    return {name: value for name, value in environment.items() if name not in settings}


def load_settings(
    flags: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path, file: Path | None = None
) -> LoadedSettings:
    """The settings for a process that works in `folder`.

    `flags` are by the names of the settings; None and empty lists are flags that were not given, as an empty variable
    is one that is not set. `file` is read in place of the folder's `whisperer.toml`, and must be there. Relative paths
    are relative to the file that they stand in, else to `folder`. Raises `SettingsError` that names the setting, the
    place of the bad value and what is expected there; names that nobody knows are refused too. The tokens are
    remembered as secrets.
    """
    found, given = _from_file(folder, file)
    given |= _from_environment(environment, folder)
    given |= _from_flags(flags, folder)
    values = {field.name: _value(field, given[field.name]) for field in FIELDS if field.name in given}
    sources = {field.name: given[field.name].source if field.name in given else DEFAULT for field in FIELDS}
    if "data" not in values:
        values["data"] = folder / Settings().data
    settings = Settings(**values)
    _check_together(settings, {name: each.place for name, each in given.items()})
    for secret in _secrets_of(settings):
        remember_secret(secret)
    return LoadedSettings(values=settings, sources=sources, file=found)


def _from_flags(flags: Mapping[str, Any], folder: Path) -> dict[str, _Given]:
    by_name = {field.name: field for field in FIELDS}
    given: dict[str, _Given] = {}
    for name, value in flags.items():
        if name not in by_name:
            raise _unknown(f"The flag --{name.replace('_', '-')}", name, {each.name: each.flag for each in FIELDS})
        if value is not None and not (isinstance(value, list | tuple | Mapping) and not value):
            source = f"flag {by_name[name].flag}"
            read = from_text if isinstance(value, str) else from_object
            given[name] = _Given(value, read, source, source, folder)
    return given


def _from_environment(environment: Mapping[str, str], folder: Path) -> dict[str, _Given]:
    by_variable = {field.variable: field for field in FIELDS}
    given: dict[str, _Given] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or _OTHER_VARIABLES.fullmatch(variable):
            continue
        if variable not in by_variable:
            raise _unknown(f"The environment variable {variable}", variable, {name: name for name in by_variable})
        if text.strip():
            source = f"environment {variable}"
            given[by_variable[variable].name] = _Given(text.strip(), from_text, source, source, folder)
    return given


def _from_file(folder: Path, file: Path | None) -> tuple[Path | None, dict[str, _Given]]:
    path = folder / (file or FILE_NAME)
    name = FILE_NAME if path.parent == folder and path.name == FILE_NAME else str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        table = tomllib.loads(f"{text}\n")  # without a last line end the parser names no line
    except FileNotFoundError:
        if file is None:
            return None, {}
        raise SettingsError(f"There is no settings file '{path}'. Name one that exists, or leave it out.") from None
    except OSError as error:
        raise SettingsError(f"The settings file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{name} is not UTF-8 text (at byte {error.start}). Save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{name} is not valid TOML: {error}. Correct that line.") from error
    known = {field.name: field.name for field in FIELDS}
    for key in table:
        if key not in known:
            raise _unknown(f"The key '{key}' of {name}{_line(text, key)}", key, known)
    return path, {
        key: _Given(value, from_object, name, f"{name}{_line(text, key)}", path.parent, text)
        for key, value in table.items()
    }


def _line(text: str, key: str) -> str:
    """Where the key stands, as far as can be told without a parser that keeps lines."""
    wanted = re.compile(rf"""\s*(?:\[\s*)?["']?{re.escape(key)}["']?\s*[]=.]""")
    number = next((number for number, line in enumerate(text.splitlines(), 1) if wanted.match(line)), None)
    return "" if number is None else f", line {number}"


def _place_in_table(given: _Given, table: Sequence[str], key: str) -> str:
    line = _line_in_table(given.text, table, key)
    return f"{given.source}{line}" if line else given.place


def _line_in_table(text: str, table: Sequence[str], key: str) -> str:
    """Where a key of a table stands, or the table if it has no such key."""
    path = r"\s*\.".join(rf"""\s*["']?{re.escape(name)}["']?""" for name in table)
    header = re.compile(rf"\s*\[{path}\s*[].]")
    wanted = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[.=]|\s*\[.*\.\s*["']?{re.escape(key)}["']?\s*\]""")
    found: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header.match(line):
            found = number if found is None else found
            if key and wanted.match(line):
                return f", line {number}"
        elif line.lstrip().startswith("["):
            if found is not None:
                break
        elif found is not None and key and wanted.match(line):
            return f", line {number}"
    return "" if found is None else f", line {found}"


def _value(field: Field, given: _Given) -> Any:
    try:
        if field.name == "mcp":
            return mcp_servers_from(given.read(given.value, field.kind), folder=given.folder)
        return checked(given.read(given.value, field.kind), field.declared, folder=given.folder)
    except McpConfigError as error:
        place = _place_in_table(given, ("mcp", error.server), error.field)
        raise SettingsError(f"The setting mcp is wrong ({place}): {error.message}") from None
    except ValueError:
        reason = reason_in_table(given.value, field.kind)
        if reason is not None:
            place = _place_in_table(given, (field.name,), reason[0])
            raise SettingsError(f"The setting {field.name} is wrong ({place}): {reason[1]}") from None
        written = "The value" if field.secret else _excerpt(given.value)
        # Not chained: the complaint of the parser quotes the value, which may be a secret.
        raise SettingsError(
            f"The setting {field.name} is wrong ({given.place}): {written} does not fit, it must be {field.expected}."
        ) from None


def _excerpt(value: Any) -> str:
    text = redacted(repr(str(value) if isinstance(value, Path) else value))
    return text if len(text) <= 100 else f"{text[:100]}…"


def _check_together(settings: Settings, places: Mapping[str, str]) -> None:
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        there, missing = ("tls_certificate", "tls_key") if settings.tls_key is None else ("tls_key", "tls_certificate")
        raise SettingsError(f"The setting {there} ({places[there]}) needs {missing} beside it. Set both or neither.")
    if LOCAL in settings.tokens:
        raise SettingsError(
            f"The setting tokens ({places['tokens']}) has a token for '{LOCAL}', who is whoever has the token of the "
            "setting token. Choose another name, or set token."
        )
    if len(set(settings.tokens.values())) < len(settings.tokens):
        raise SettingsError(
            f"The setting tokens ({places['tokens']}) has a token twice. Give each principal a token of its own."
        )


def _secrets_of(settings: Settings) -> list[str]:
    stated = [value for each in settings.mcp.values() for value in (*each.env.values(), *each.headers.values())]
    return [
        *(secret for value in stated for secret in secrets_in(value)),
        *settings.tokens.values(),
        *([settings.token] if settings.token else []),
        *_passwords_in(settings.store or ""),
    ]


def _passwords_in(address: str) -> list[str]:
    """The password in the address of a database, as it is written and as it is meant."""
    _, mark, password = address.partition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")
    return [password, unquote(password)] if mark and password else []


def _unknown(what: str, name: str, known: Mapping[str, str]) -> SettingsError:
    by_letters = {each.lower(): shown for each, shown in known.items()}
    near = difflib.get_close_matches(name.replace("-", "_").lower(), by_letters, n=1)
    hint = f"Did you mean {by_letters[near[0]]}?" if near else f"Known are: {', '.join(known.values())}."
    return SettingsError(f"{what} is not a setting. {hint}")
