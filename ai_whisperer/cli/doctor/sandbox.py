"""Checks of the sandboxes: which of them hold here, and which one runs the programs of agents."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.errors import SettingsError
from ai_whisperer.sandbox.choosing import AUTO, ChosenSandbox
from ai_whisperer.sandbox.levels import STRONG
from ai_whisperer.sandbox.probing import Probe
from ai_whisperer.sandbox.ways_out import WAYS
from ai_whisperer.server import own_user

_ADVICE = {
    "namespaces": "It needs Linux 5.12 or newer, and a kernel that gives namespaces to the user of the server.",
    "bubblewrap": "Install bubblewrap with the packages of the system, if you want it.",
    "sandlock": "It opens the network for granted hosts. It needs what namespaces needs, and Linux 6.12 with Landlock.",
}


def check_user(name: str | None = None, data: Path | None = None, *, is_root: bool | None = None) -> Finding:
    """Who the server would be. With the setting `user` this process becomes that user: all else is looked at as it."""
    if name is not None and data is not None:
        try:
            own_user.change_to(name, data)
        except SettingsError as error:
            return problem("User", f"the server cannot be '{name}', as set", error.message)
        return ok("User", f"{name}, as set")
    if own_user.is_root() if is_root is None else is_root:
        return warning("User", "root", own_user.WARNING)
    return ok("User", "not root")


def check_sandbox(wanted: str = AUTO, probes: list[Probe] | None = None) -> list[Finding]:
    """What was found about each level, and which is used; the levels are tried unless that is given."""
    chooser = ChosenSandbox(wanted)
    if probes is None:
        probes = asyncio.run(_probed(chooser))
    chosen = chooser.chosen_of(probes)
    if chosen is None:
        first = warning(
            "Sandbox",
            f"none works (setting sandbox: {wanted}); run_command and run_python are refused",
            "See below what each needs. In a container that gives no namespaces, set sandbox = 'landlock' if you can "
            "accept what it leaves open, or 'rlimits' to run code with nothing but limits around it.",
        )
    elif not chosen.holds:
        first = warning(
            "Sandbox",
            f"{chosen.level} (as set) does not contain programs: {chosen.reason}",
            f"Set sandbox = 'auto' where one of {', '.join(STRONG)} works.",
        )
    else:
        first = ok("Sandbox", f"{chosen.level} contains the programs of agents (setting sandbox: {wanted})")
    return [first, *(_of_level(each) for each in probes)]


def _of_level(probe: Probe) -> Finding:
    check = f"Sandbox: {probe.level}"
    if not probe.holds:
        advice = _ADVICE.get(probe.level, "It is used only if it is named.")
        return Finding(check=check, level=ok("", "").level, found=f"no: {probe.reason}", advice=advice)
    held = f"works: none of {len(WAYS)} escape attempts succeeds"
    return ok(check, f"{held}, but {probe.weakness}" if probe.weakness else held)


async def _probed(chooser: ChosenSandbox) -> list[Probe]:
    try:
        return await chooser.probe_all()
    finally:
        await chooser.close()
