"""`whisperer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from ai_whisperer.cli.calling import Call, command

if TYPE_CHECKING:
    from ai_whisperer.replay.recording import Comparison, Recording, Spent


def register(app: typer.Typer) -> None:
    command(app, compare, settings=("data", "store", "work", "tools"))


async def compare(
    call: Call,
    first: Annotated[str, typer.Argument(metavar="A", help="A session, or the file of a recording.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
) -> int:
    """Lay two sessions or recordings side by side: where agents first differ, and what it comes to.

    Steps are aligned by what caused them, so ids, times and orders do not matter. It exits with 0 if agents answered,
    called and wrote the same, else with 1.
    """
    from ai_whisperer.replay.recording import compare as laid_side_by_side

    found = laid_side_by_side(await _recording(call, first), await _recording(call, second))
    if call.output.as_json:
        told: dict[str, Any] = msgspec.to_builtins(found)
        call.output.json({"same": found.is_same, **told})
    else:
        call.output.text("\n".join(_lines(found)))
    return 0 if found.is_same else 1


async def _recording(call: Call, named: str) -> Recording:
    from ai_whisperer.cli.recordings import tools_here
    from ai_whisperer.replay.recording import read_recording, record, session_store

    path = Path(named)
    if path.suffix == ".wrec" or path.is_file():  # noqa: ASYNC240 - once, and at the very beginning
        return read_recording(path)
    values = call.settings.values
    async with session_store(values.work or values.data, named, address=values.store) as store:
        return await record(store, named, tools=tools_here(call))


def _lines(found: Comparison) -> list[str]:
    lines = [f"Answers: {found.same_answers:,} are the same, {found.other_answers:,} are not."]
    for parting in found.partings:
        lines.append(f"{parting.agent}: first difference at {parting.key}: it {parting.what}.")
        lines += [f"  {line}" for line in parting.diff.splitlines()]
    for what, items in (
        ("Calls only in A", found.calls_only_in_a),
        ("Calls only in B", found.calls_only_in_b),
        ("Mails only in A", found.mails_only_in_a),
        ("Mails only in B", found.mails_only_in_b),
    ):
        if items:
            lines += [f"{what}: {len(items):,}", *(f"  {item}" for item in items[:_SHOWN])]
            lines += [f"  … and {len(items) - _SHOWN:,} more"] if len(items) > _SHOWN else []
    one, two = found.spent
    lines += [f"A: {_told(one)}", f"B: {_told(two)}"]
    return lines


_SHOWN = 20


def _told(spent: Spent) -> str:
    cost = "no known price" if spent.cost_usd is None else f"${spent.cost_usd:,.4f}"
    tokens = f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
    return f"{spent.requests:,} requests, {tokens}, {cost}, {spent.seconds:,.1f} s"
