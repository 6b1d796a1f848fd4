"""`whisperer config`."""

from __future__ import annotations

from typing import Any

import typer

from ai_whisperer.cli.calling import ALL, Call, command
from ai_whisperer.cli.output import Column
from ai_whisperer.settings import ShownSetting


def register(app: typer.Typer) -> None:
    command(app, config, settings=ALL)


def config(call: Call) -> None:
    """Show every setting with its value and where the value came from.

    Flags come before `WHISPERER_*` variables, these before `whisperer.toml` in the current folder, and that before the
    defaults. Secrets are not shown.
    """
    shown, file = call.settings.shown(), call.settings.file
    if call.output.as_json:
        call.output.json({"file": None if file is None else str(file), "settings": shown})
    else:
        call.output.rows(shown, _COLUMNS)
        call.output.note("There is no whisperer.toml here." if file is None else f"The file is {file}.")


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return "" if value is None else str(value)


_COLUMNS = (
    Column[ShownSetting]("SETTING", lambda each: each.name, whole=True),
    Column[ShownSetting]("VALUE", lambda each: _in_words(each.value), whole=True),
    Column[ShownSetting]("FROM", lambda each: each.source, whole=True),
    Column[ShownSetting]("WHAT IT IS", lambda each: each.description),
)
