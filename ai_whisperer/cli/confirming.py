"""Asking before something goes for good."""

from __future__ import annotations

import typer

from ai_whisperer.cli.calling import Call


async def confirmed(call: Call, question: str, *, yes: bool) -> None:
    """Go on only if the person says yes, or has said so with --yes."""
    if yes:
        return
    if call.output.as_json:
        raise typer.BadParameter("--json cannot ask for confirmation. Pass --yes to do it.")
    await call.output.ask(question)
