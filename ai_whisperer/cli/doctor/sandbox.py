"""Checks of the sandboxes: which of them hold here, and which one runs the programs of agents."""

from __future__ import annotations

import asyncio

from ai_whisperer.cli.doctor.findings import Finding, ok, warning
from ai_whisperer.tools.sandbox.choosing import AUTO, ChosenSandbox
from ai_whisperer.tools.sandbox.probing import RLIMITS, Probe

_ADVICE = {
    "sandlock": "It needs Linux 6.12 or newer with Landlock: pip install sandlock",
    "bubblewrap": "Install bubblewrap with the packages of the system, if you want it.",
}


def check_sandbox(wanted: str = AUTO, probes: list[Probe] | None = None) -> list[Finding]:
    """What was found about each level, and which is used; the levels are tried unless that is given."""
    chooser = ChosenSandbox(wanted)
    if probes is None:
        probes = asyncio.run(_probed(chooser))
    chosen = chooser.chosen_of(probes)
    if chosen is None:
        first = warning(
            "Sandbox",
            f"none holds (setting sandbox: {wanted}); run_command and run_python are refused",
            "Install one of those below; or set sandbox = 'rlimits' to run code with nothing but limits around it.",
        )
    elif chosen.level == RLIMITS:
        first = warning(
            "Sandbox",
            "rlimits (as set): programs of agents can read and write whatever the server can",
            "Set sandbox = 'auto' where sandlock or bubblewrap holds.",
        )
    else:
        first = ok("Sandbox", f"{chosen.level} holds the programs of agents (setting sandbox: {wanted})")
    return [first, *(_of_level(each) for each in probes)]


def _of_level(probe: Probe) -> Finding:
    check = f"Sandbox: {probe.level}"
    if not probe.holds:
        return Finding(
            check=check, level=ok("", "").level, found=f"no: {probe.reason}", advice=_ADVICE.get(probe.level, "")
        )
    if probe.level == RLIMITS:
        return ok(check, "holds memory, CPU time, processes and size of files; files and network are open")
    return ok(check, f"holds, but {probe.weakness}" if probe.weakness else "holds")


async def _probed(chooser: ChosenSandbox) -> list[Probe]:
    try:
        return await chooser.probe_all()
    finally:
        await chooser.close()
