"""Checks of models: keys, packages of providers, and the model that would be used."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.cli.model_choice import choose_model
from ai_whisperer.client import Client
from ai_whisperer.errors import ModelNameError, WhispererError
from ai_whisperer.models.detection import KEYS, PROVIDERS, SERVERS
from ai_whisperer.models.names import SCRIPTED, SCRIPTED_DEMO
from ai_whisperer.server.address import Address, find_address
from ai_whisperer.settings import LoadedSettings

_PATIENCE_SECONDS = 5.0


def check_keys(environment: Mapping[str, str]) -> Finding:
    """Which variables are set, by their names."""
    names = [name for names in (*KEYS.values(), *SERVERS.values()) for name in names]
    there = [name for name in names if environment.get(name, "").strip()]
    if not there:
        return ok("Keys", f"none of {', '.join(names)} is set")
    return ok("Keys", f"set: {', '.join(there)}")


def check_packages() -> Finding:
    """Which providers can be used, and what to install for the others."""
    usable = [provider.prefix for provider in PROVIDERS if provider.is_installed]
    missing = [f"{each.prefix} needs {each.install}" for each in PROVIDERS if not each.is_installed]
    return ok("Providers", "; ".join([f"usable: {', '.join(usable)}", *missing]))


class Chosen(NamedTuple):
    """The model that would be used, if any can be, and what there is to say about it."""

    model: str | None
    findings: tuple[Finding, ...]


def check_choice(settings: LoadedSettings, environment: Mapping[str, str]) -> Chosen:
    """The model that was named or, if none was, that the environment offers."""
    try:
        choice = choose_model(settings, environment)
    except ModelNameError as error:
        named = f"{settings.values.model} ({settings.sources['model']}) cannot be used"
        return Chosen(None, (problem("Model", named, error.message),))
    passed_over = [warning("Model", each) for each in choice.problems]
    found = f"{choice.model} ({choice.why})"
    if settings.values.model is None and choice.model == SCRIPTED_DEMO:
        advice = (
            "It gives fixed answers. Set the key of a provider, start a model server, or name a model with --model."
        )
        return Chosen(choice.model, (*passed_over, warning("Model", found, advice)))
    others = [each for each in choice.candidates if each.problem is None and each.model != choice.model]
    also = [ok("Model", f"--model {each.model} would do too ({each.source})") for each in others]
    return Chosen(choice.model, (*passed_over, ok("Model", found), *also))


def check_server(data: Path) -> Chosen | None:
    """The model of the server that runs in that folder; None if none does."""
    address = find_address(data)
    if address is None:
        return None
    try:
        model = asyncio.run(_model_at(address))
    except (TimeoutError, WhispererError) as error:
        found = f"the model of the server at {address.url} is unknown: the server does not answer"
        return Chosen(None, (warning("Model", found, str(error) or "Check whether it still runs, and restart it."),))
    found = f"{model} (the model of the server at {address.url})"
    if model in (SCRIPTED, SCRIPTED_DEMO):
        advice = "It gives fixed answers. Start the server again with the key of a provider, or with --model."
        return Chosen(model, (warning("Model", found, advice),))
    return Chosen(model, (ok("Model", found),))


async def _model_at(address: Address) -> str:
    async with (
        asyncio.timeout(_PATIENCE_SECONDS),
        Client(address.url, address.token, certificate=address.certificate, reconnect_seconds=0) as client,
    ):
        return (await client.server_info()).model
