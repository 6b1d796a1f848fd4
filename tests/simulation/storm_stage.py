"""Small teams for storms: a script, rules and tools in a folder, and universes with the faults that a test wants."""

from __future__ import annotations

from pathlib import Path

from ai_whisperer.storm.faults import AnyFault, Interleaving, Schedule
from ai_whisperer.storm.log import Log
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.team import TeamSource
from ai_whisperer.storm.universe import Outcome, run_universe

EXAMPLES = Path(__file__).parents[2] / "examples"
INVOICE = EXAMPLES / "storm" / "invoice.txt"
LOCKED = EXAMPLES / "storm" / "invoice_locked.txt"
REPORT = EXAMPLES / "talks" / "parallel_report.txt"

TEAM = '''
from ai_whisperer import ToolContext, tool
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn, UserTurn
from ai_whisperer.storm import invariant

DONE = []
LOGS = []

talk = """
agent ann
ann: first
wait for all
ann: second
expect ann contains second
"""


@tool
async def work(what: str, context: ToolContext) -> str:
    """Work."""
    DONE.append(what)
    return f"did {what}"


def answer(request):
    last = request.turns[-1]
    if isinstance(last, ToolTurn):
        return last.content
    what = without_marks(last.text)
    call = ToolCall(call_id="1", name="work", arguments='{"what": "%s"}' % what)
    return Answer(tool_calls=(call,), finish="tool_call")


@invariant
def everything_is_seen(log):
    LOGS.append(log)
'''


def written(folder: Path, text: str = TEAM) -> TeamSource:
    path = folder / "team.py"
    path.write_text(text, encoding="utf-8")
    return team_in(path)


def universe(source: TeamSource, *faults: AnyFault, seed: int | None = None) -> tuple[Outcome, Log, list[str]]:
    """What came of it, its log, and what its tool did."""
    team = source.team()
    outcome = run_universe(team, Schedule(interleaving=Interleaving(seed=seed), faults=faults))
    names = next(each.function.__globals__ for each in team.invariants if each.name == "everything_is_seen")
    return outcome, names["LOGS"][0], names["DONE"]
