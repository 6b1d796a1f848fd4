"""`whisperer doctor`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ai_whisperer.cli.calling import SERVING, Call, command
from ai_whisperer.cli.output import Output, console
from ai_whisperer.cli.printable import one_line
from ai_whisperer.settings import LoadedSettings

if TYPE_CHECKING:
    from ai_whisperer.cli.doctor.findings import Finding


def register(app: typer.Typer) -> None:
    command(app, doctor, settings=SERVING)


def doctor(
    call: Call,
    *,
    ask: Annotated[bool, typer.Option("--ask", help="Send the model one small request with a tool.")] = False,
) -> int:
    """Look whether everything is there that is needed, and say what to do where it is not.

    Each line is ok, a warning or a problem. It leaves with 1 if there is a problem, else with 0. Of keys only the names
    are shown. With --ask it tells how fast the model is and whether it can call tools, too; a port that is taken is
    then a warning.
    """
    from ai_whisperer.cli.doctor.findings import Level

    findings = _found(call, asks=ask)
    is_well = all(each.level is not Level.PROBLEM for each in findings)
    if call.output.as_json:
        call.output.json({"ok": is_well, "checks": findings})
    else:
        for each in findings:
            _show(call.output, each)
    return 0 if is_well else 1


def _found(call: Call, *, asks: bool) -> list[Finding]:
    """All findings; only that of the user if the server cannot be it: nothing else can be looked at as that user."""
    from ai_whisperer.cli.doctor import findings, sandbox
    from ai_whisperer.protocol import wire  # noqa: F401 - a user who cannot read the program could not load it later

    values = call.settings.values
    user = sandbox.check_user(values.user, values.data)
    if user.level is findings.Level.PROBLEM:
        return [user]
    found = [*_of_machine(call.settings, user), *_of_models(call, os.environ, asks=asks)]
    return [*map(_beside_the_point, found)] if asks else found


def _beside_the_point(finding: Finding) -> Finding:
    """Whoever asks about the model can use it though the port is taken: that keeps nothing but a server from it."""
    from msgspec.structs import replace

    from ai_whisperer.cli.doctor.findings import Level

    is_port = finding.check == "Port" and finding.level is Level.PROBLEM
    return replace(finding, level=Level.WARNING) if is_port else finding


def _show(output: Output, finding: Finding) -> None:
    lines = [f" {finding.check + ':':<13} {one_line(finding.found)}"]
    if finding.advice:
        lines.append(f"{'':23}{one_line(finding.advice)}")
    if not output.is_terminal:
        output.text("\n".join([f"{finding.level:<8}{lines[0]}", *lines[1:]]))
        return
    from rich.text import Text

    told = Text(f"{finding.level:<8}", style=_STYLES[finding.level])
    console().print(told.append("\n".join(lines), style="default"))


_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def _of_machine(settings: LoadedSettings, user: Finding) -> Sequence[Finding]:
    from ai_whisperer.cli.doctor import folder, machine, mcp, providers, sandbox
    from ai_whisperer.server.serving import templates_of, toolbox_of
    from ai_whisperer.store.sqlite.files import DATABASE_NAME

    values = settings.values
    return [
        machine.check_python(),
        machine.check_event_loop(values.event_loop),
        machine.check_sqlite(),
        folder.check_folder(values.data),
        folder.check_database(values.data) if values.store is None else folder.check_store(values.store),
        machine.check_disk(values.data),
        machine.check_time(values.data / DATABASE_NAME),
        folder.check_port(values),
        *folder.check_templates(templates_of(values)),
        *folder.check_tools(toolbox_of(values)),
        user,
        *sandbox.check_sandbox(values.sandbox),
        *mcp.check_mcp(values.mcp, os.environ),
        *mcp.check_running_mcp(values.data, values.session),
        *providers.check_running_providers(values.data, values.session),
    ]


def _of_models(call: Call, environment: Mapping[str, str], *, asks: bool) -> Sequence[Finding]:
    """Of the model of the server that runs, if one does and the person does not ask about another."""
    from ai_whisperer.cli.doctor import asking, models

    used = None if call.is_given("model") else models.check_server(call.settings.values.data)
    chosen = used or models.check_choice(call.settings, environment)
    findings = [models.check_keys(environment), models.check_packages(), *chosen.findings]
    if asks and chosen.model is not None:
        findings += asking.ask_model(chosen.model)
    return findings
