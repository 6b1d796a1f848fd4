"""`whisperer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.domain.forks import PartingKind
from ai_whisperer.errors import InvalidInputError

if TYPE_CHECKING:
    from ai_whisperer.domain.forks import Comparison, Spent
    from ai_whisperer.replay.recording import Recording


def register(app: typer.Typer) -> None:
    command(app, compare, settings=("data", "store", "work", "tools", "url", "token"))


async def compare(
    call: Call,
    first: Annotated[str, typer.Argument(metavar="A", help="A session, or the file of a recording.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
) -> int:
    """Lay two sessions or recordings side by side: where agents first differ, and what it comes to.

    Steps are aligned by what caused them, so ids, times and orders do not matter. It exits with 0 if agents answered,
    called and wrote the same, else with 1.
    """
    found = await _found(call, first, second)
    if call.output.as_json:
        call.output.json(msgspec.to_builtins(found))
    else:
        call.output.text("\n".join(_lines(found)))
    return 0 if found.is_same else 1


async def _found(call: Call, first: str, second: str) -> Comparison:
    """Two sessions are compared by their server if one runs; files, and sessions at rest, are compared here."""
    from ai_whisperer.cli.connecting import known_address
    from ai_whisperer.replay.recording import compare as laid_side_by_side

    files = [each for each in (first, second) if _is_file(each)]
    if not files and known_address(call.settings.values) is not None:
        async with call.server(patience_seconds=_PATIENCE_SECONDS) as client:
            return await client.compare_sessions(second, session_id=first)
    if len(files) == 1 and call.settings.values.url is not None:
        raise InvalidInputError(
            f"'{files[0]}' is a file here, and the sessions of --url are elsewhere. Compare two of these, or two "
            "files: `whisperer record` makes one where the data folder is."
        )
    return laid_side_by_side(await _recording(call, first), await _recording(call, second))


def _is_file(named: str) -> bool:
    path = Path(named)
    return path.suffix == ".wrec" or path.is_file()


async def _recording(call: Call, named: str) -> Recording:
    from ai_whisperer.cli.recordings import tools_here
    from ai_whisperer.replay.recording import read_recording, record_to_compare, session_store

    if _is_file(named):
        return read_recording(Path(named))
    values = call.settings.values
    async with session_store(values.work or values.data, named, address=values.store) as store:
        return await record_to_compare(store, named, tools=tools_here(call))


def _lines(found: Comparison) -> list[str]:
    lines = [f"Answers: {found.same_answers:,} are the same, {found.other_answers:,} are not."]
    for parting in found.partings:
        places = [f"{side} {seq}" for side, seq in (("A", parting.seq_a), ("B", parting.seq_b)) if seq is not None]
        lines.append(
            f"{parting.agent_id}: first difference at {parting.key}: {_KINDS[parting.kind]} "
            f"(entry {', '.join(places) or 'none'})."
        )
        lines += [f"  {line}" for line in parting.diff.splitlines()]
    for what, items in (
        ("Calls only in A", found.calls_only_in_a),
        ("Calls only in B", found.calls_only_in_b),
        ("Mails only in A", found.mails_only_in_a),
        ("Mails only in B", found.mails_only_in_b),
    ):
        if items:
            shown = (f"  {item.agent_id}: {item.text} (entry {item.seq})" for item in items[:_SHOWN])
            lines += [f"{what}: {len(items):,}", *shown]
            lines += [f"  … and {len(items) - _SHOWN:,} more"] if len(items) > _SHOWN else []
    lines += [f"A: {_told(found.spent.a)}", f"B: {_told(found.spent.b)}"]
    return lines


_KINDS = {
    PartingKind.ANSWER: "the answers differ",
    PartingKind.RESULT: "the tool brought something else",
    PartingKind.ONLY_IN_A: "only A has this step",
    PartingKind.ONLY_IN_B: "only B has this step",
}
_SHOWN = 20
_PATIENCE_SECONDS = 60.0


def _told(spent: Spent) -> str:
    cost = "no known price" if spent.cost_usd is None else f"${spent.cost_usd:,.4f}"
    tokens = f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
    return f"{spent.requests:,} requests, {tokens}, {cost}, {spent.seconds:,.1f} s"
