"""The settings as they were given on the command line, and those that hold with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ai_whisperer.errors import SettingsError
from ai_whisperer.settings import LoadedSettings, load_settings

CONNECTION = ("url", "token", "session", "data")
"""The settings that say which server and which session is meant."""


def flags_of(context: typer.Context) -> dict[str, Any]:
    """What was given so far, as far as it can be told while the line is still being written."""
    chain: list[typer.Context] = [context]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)  # type: ignore[arg-type]
    return {
        name: value
        for each in reversed(chain)
        for name, value in each.params.items()
        if name in CONNECTION and isinstance(value, str)
    }


def load(flags: Mapping[str, Any]) -> LoadedSettings:
    """The settings that hold in this process."""
    try:
        folder = Path.cwd()
    except FileNotFoundError as error:
        raise SettingsError("The current folder has been deleted. Change to another one.") from error
    return load_settings(flags, environment=os.environ, folder=folder)
