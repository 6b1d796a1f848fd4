"""A team for tests: words, tools, time, deaths, and what it says when a test is wrong."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from ai_whisperer import tool
from ai_whisperer.domain.conversation import Answer, ToolSpec
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.domain.waits import Touch
from ai_whisperer.errors import InvalidInputError, ModelServerError, ScriptError, StateError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.expecting import UnmetError
from ai_whisperer.testing import team_loop
from ai_whisperer.testing.stuck import StuckError
from ai_whisperer.testing.team import TaskFailedError, Team
from ai_whisperer.testing.watched_tools import ToolFailedError
from ai_whisperer.testing.words import MisspeltCallError, UnsaidError, call, calls
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.workplace import Workplace


def pay(invoice: str) -> str:
    """Pay an invoice."""
    return f"paid {invoice}"


async def brew(cups: int) -> str:
    """Brew coffee, for an hour."""
    await asyncio.sleep(3600)
    return f"{cups} cups"


def test_an_agent_says_what_the_test_says_and_its_calls_are_seen() -> None:
    with Team(tools=[pay]) as team:
        team.agent("clerk")
        team.says("clerk", call("pay", invoice="7"), "Paid.")
        assert team.ask("clerk", "Pay invoice 7.") == "Paid."
        (paid,) = team.calls("pay")
        assert (paid.agent, paid.arguments, paid.result, paid.failed) == ("clerk", {"invoice": "7"}, "paid 7", False)
        assert team.answers("clerk") == ["Paid."]
        assert "Pay invoice 7." in str(team.requests("clerk")[0].turns)
        assert len(team.log("async.task.completed")) == 1


def test_hours_pass_at_once() -> None:
    begun = time.perf_counter()
    with Team(tools=[brew], start="2027-03-01T08:00:00+01:00") as team:
        team.agent("cook")
        team.says("cook", call("brew", cups=2), "Ready.")
        assert team.ask("cook", "Coffee!") == "Ready."
        assert 3600 < (team.now.timestamp() - 1_803_884_400) < 3610
        team.later("2h 30min")
        assert team.now.hour == 10
    assert time.perf_counter() - begun < 60


def test_what_was_on_disk_is_there_after_a_kill_and_work_resumes() -> None:
    with Team(tools=[pay, brew]) as team:
        team.agent("clerk")
        team.says("clerk", call("pay", invoice="7"), call("brew", cups=1), "Done.")
        task = team.begin("clerk", "Pay, then brew.")
        team.until(lambda: team.runs("brew"))
        team.later("10min")
        team.kill_and_restart(down_for="1d")
        ended = team.ended(task)
        assert ended.result is not None
        assert ended.result.final == "Done."
        assert [each.state for each in team.calls()] == [StepState.DONE, StepState.UNKNOWN]
        assert [each.tool for each in team.runs()] == ["pay", "brew"]


def test_a_request_that_is_repeated_after_a_kill_gets_the_answer_that_it_got() -> None:
    with Team(latency="10s") as team:
        team.agent("ann")
        team.says("ann", "first", "second")
        task = team.begin("ann", "go")
        team.later("5s")
        team.kill()
        team.later("1h")
        team.restart()
        ended = team.ended(task)
        assert ended.result is not None
        assert ended.result.final == "first"
        assert team.ask("ann", "again") == "second"


def test_a_call_that_may_be_repeated_runs_again_and_the_test_sees_it() -> None:
    with Team(tools=[tool(brew, idempotent=True)]) as team:
        team.agent("cook")
        team.says("cook", call("brew", cups=1), "Done.")
        task = team.begin("cook", "go")
        team.until(lambda: team.runs("brew"))
        team.kill_and_restart()
        team.ended(task)
        assert len(team.runs("brew")) == 2
        assert [each.state for each in team.calls("brew")] == [StepState.DONE]


def test_nothing_of_a_killed_process_goes_on() -> None:
    ticks: list[str] = []

    async def tick() -> str:
        """Tick for ever."""
        try:
            while True:
                await asyncio.sleep(1)
                ticks.append("tick")
        finally:
            ticks.append("end")

    with Team(tools=[tick]) as team:
        team.agent("clock")
        team.says("clock", call("tick"), "Over.")
        task = team.begin("clock", "go")
        team.later("10s")
        seen = len(ticks)
        assert 5 < seen < 11
        team.kill_and_restart(down_for="1h")
        team.ended(task)
        team.later("1h")
        assert len(ticks) == seen


def test_agents_write_to_each_other_and_to_the_user() -> None:
    with Team() as team:
        team.agent("writer", tools=["send_mail"])
        team.agent("reader", tools=["send_mail"])
        team.says("writer", call("send_mail", to_agent="reader", subject="Draft", body="Rain."), "Sent.")
        team.says("reader", call("send_mail", to_agent="user", subject="Read", body="Good."), "Told.")
        team.send("writer", "Write.")
        assert [mail.subject for mail in team.mail("reader")] == ["Draft"]
        assert [mail.body for mail in team.mail(sender="reader")] == ["Good."]


def test_a_person_allows_and_refuses_and_answers() -> None:
    guarded = tool(pay, needs_approval=True)
    with Team(tools=[guarded]) as team:
        team.agent("clerk", tools=["pay", "ask_user"])
        team.says("clerk", call("pay", invoice="1"), "One.", call("pay", invoice="2"), "Two.")
        assert not team.send("clerk", "Pay 1.").state.ended
        assert [each.tool for each in team.approvals("clerk")] == ["pay"]
        assert team.runs("pay") == []
        team.approve("clerk")
        assert team.answers("clerk") == ["One."]
        team.send("clerk", "Pay 2.")
        team.kill_and_restart()
        team.refuse("clerk", reason="too much")
        assert [each.arguments for each in team.runs("pay")] == [{"invoice": "1"}]
        team.says("clerk", call("ask_user", question="Which colour?"), "Blue it is.")
        team.send("clerk", "Ask.")
        team.reply("clerk", "blue")
        assert team.answers("clerk")[-1] == "Blue it is."


class Till(Tool):
    """A tool of a class that decides by itself what it touches, whether it asks, and whether it may be repeated."""

    @property
    def spec(self) -> ToolSpec:
        return replace(super().spec, description="Take from the till.")

    def wants_approval(self, arguments: str) -> bool:
        return "large" in arguments

    def touched_by(self, arguments: str, workplace: Workplace) -> tuple[Touch, ...]:
        del arguments, workplace
        return (Touch(resource="till", access=Access.WRITE),)

    def may_repeat(self, arguments: str) -> bool:
        return "small" in arguments


def test_a_tool_of_a_class_of_its_own_is_asked_itself_what_it_touches_and_whether_a_person_is_needed() -> None:
    busy: list[str] = []

    async def take(what: str) -> str:
        """Take."""
        busy.append(what)
        assert len(busy) == 1, "two are at the till at once"
        await asyncio.sleep(60)
        busy.remove(what)
        return what

    with Team(tools=[Till(take, touches="read till", needs_approval=True)]) as team:
        for agent in ("ann", "ben"):
            team.agent(agent)
            team.says(agent, call("take", what=f"small {agent}"), "Taken.")
        tasks = [team.begin(agent, "Take.") for agent in ("ann", "ben")]
        assert [team.ended(task).state for task in tasks] == ["completed", "completed"]
        tools = {each.name: each.description for each in team.requests("ann")[0].tools}
        assert tools["take"] == "Take from the till."
        team.says("ann", call("take", what="large"), "Taken.")
        assert not team.send("ann", "Take much.").state.ended
        team.approve("ann")
        assert team.answers("ann") == ["Taken.", "Taken."]


def test_a_tool_of_a_class_of_its_own_is_repeated_after_a_kill_if_it_says_so() -> None:
    ran: list[str] = []

    async def take(what: str) -> str:
        """Take."""
        ran.append(what)
        await asyncio.sleep(60)
        return what

    with Team(tools=[Till(take, touches="read till", needs_approval=True)]) as team:
        team.agent("ann")
        for what in ("small", "a bit"):
            team.says("ann", call("take", what=what), "Taken.")
            task = team.begin("ann", "Take.")
            team.until(lambda what=what: what in ran)  # type: ignore[misc]
            team.kill_and_restart()
            team.ended(task)
        assert ran == ["small", "small", "a bit"]


def test_a_function_of_its_own_belongs_to_its_agent_after_a_kill_too() -> None:
    with Team() as team:
        team.agent("clerk", tools=[pay])
        team.kill_and_restart()
        team.says("clerk", call("pay", invoice="7"), "Paid.")
        assert team.ask("clerk", "Pay.") == "Paid."
        assert len(team.runs("pay")) == 1


def test_a_blocking_tool_takes_no_virtual_time_and_runs_in_a_thread() -> None:
    threads: list[str] = []

    def block() -> str:
        """Block."""
        time.sleep(0.05)
        threads.append(threading.current_thread().name)
        return asyncio.run(asyncio.sleep(0, "done"))

    with Team(tools=[block], latency=0) as team:
        team.agent("ann")
        team.says("ann", calls(("block", {}), ("block", {})), "Done.")
        begun = team.now
        team.ask("ann", "go")
        assert (team.now - begun).total_seconds() < 0.5
        assert threads == ["whisperer-tool"] * 2


def test_a_blocking_tool_can_hold_a_lock() -> None:
    def write(token: int, context: ToolContext) -> str:
        """Write under a lock."""
        with context.guard("file", token):
            return "written"

    with Team(tools=[write]) as team:
        team.agent("ann", tools=["acquire_lock", "write"])
        team.says("ann", call("acquire_lock", name="file"), call("write", token=1), "Done.")
        team.ask("ann", "go")
        assert team.calls("write")[0].result == "written"


def test_the_same_seed_brings_the_same_run() -> None:
    def run(seed: int) -> list[tuple[float, str]]:
        with Team(tools=[pay, brew], seed=seed) as team:
            for name in ("ann", "ben"):
                team.agent(name)
                team.says(name, calls(("pay", {"invoice": name}), ("brew", {"cups": 1})), "Done.")
                team.begin(name, "go")
            team.later("1h")
            team.kill_and_restart()
            team.settle()
            return [(note.at, note.name) for note in team.log()]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_models_fail_as_the_test_says() -> None:
    with Team() as team:
        team.agent("ann")
        team.says("ann", ModelServerError("down"), "Here again.")
        assert team.ask("ann", "Hello.") == "Here again."
        assert len(team.requests("ann")) == 2


def test_a_function_speaks_for_an_agent_and_another_for_the_rest() -> None:
    with Team(words=lambda request: f"I am {request.agent_id}.") as team:
        team.agent("ann")
        team.agent("ben")
        team.says("ben", lambda request: f"{len(request.turns)} turns")
        assert (team.ask("ann", "?"), team.ask("ben", "?")) == ("I am ann.", "1 turns")


def test_a_test_that_does_not_say_what_a_model_answers_is_told_so() -> None:
    with Team() as team:
        team.agent("ann")
        with pytest.raises(UnsaidError, match=r"ann asks its model .* 'Hello.*team.says\('ann'"):
            team.ask("ann", "Hello.")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (call("pya", invoice="7"), "the agent has no such tool. Did you mean 'pay'?"),
        (call("pay", invoce="7"), "it takes no 'invoce'. Did you mean 'invoice'?"),
        (call("pay"), "it needs invoice."),
    ],
)
def test_a_call_with_a_typo_is_told_to_the_test_and_not_to_the_model(said: Answer, told: str) -> None:
    with Team() as team:
        team.agent("ann", tools=[pay])
        team.says("ann", said, "Paid.")
        with pytest.raises(MisspeltCallError, match=re.escape(told)):
            team.ask("ann", "go")


def test_a_test_may_want_a_call_that_does_not_fit() -> None:
    with Team() as team:
        team.agent("ann", tools=[pay])
        team.lets_fail()
        team.says("ann", call("pay"), "It did not work.")
        assert team.ask("ann", "go") == "It did not work."
        assert team.calls("pay")[0].failed


def test_what_a_speaking_function_raises_is_raised_in_the_test() -> None:
    def broken(request: ModelRequest) -> str:
        raise KeyError(request.agent_id)

    with Team(words=broken) as team:
        team.agent("ann")
        with pytest.raises(KeyError, match="ann"):
            team.send("ann", "Hello.")


def test_a_tool_that_fails_fails_the_test_unless_it_may() -> None:
    def lose(invoice: str) -> str:
        """Lose it."""
        raise LookupError(invoice)

    with Team(tools=[lose]) as team:
        team.agent("ann")
        team.says("ann", call("lose", invoice="7"), "Well.", call("lose", invoice="8"), "Oh.")
        with pytest.raises(ToolFailedError, match=r"lose failed when ann called it: LookupError: 7") as told:
            team.ask("ann", "go")
        assert isinstance(told.value.__cause__, LookupError)
        team.lets_fail("lose")
        assert team.ask("ann", "go") == "Oh."
        assert [each.failed for each in team.calls("lose")] == [True, True]


def test_a_task_that_fails_says_why() -> None:
    with Team(tools=[brew]) as team:
        team.agent("ann")
        team.says("ann", call("brew", cups=1))
        with pytest.raises(TaskFailedError, match=r"ann did not do 'go', the task ended as failed: deadline"):
            team.ask("ann", "go", timeout_seconds=60)


def test_a_wait_that_never_ends_says_who_waits_for_what() -> None:
    async def forever() -> str:
        """Wait for what never comes."""
        return await asyncio.Event().wait() and "never"

    guarded = tool(pay, needs_approval=True)
    with Team(tools=[forever, guarded]) as team:
        team.agent("ann")
        team.agent("clerk")
        team.says("clerk", call("pay", invoice="7"))
        with pytest.raises(StuckError, match=r"clerk waits for a person who allows pay\(.*team.approve\('clerk'\)"):
            team.ask("clerk", "Pay.")
        team.says("ann", call("forever"))
        with pytest.raises(StuckError, match=r"within 1 d of virtual time.* ann works on user_prompt since"):
            team.send("ann", "go")
        with pytest.raises(StuckError, match="within 5 s"):
            team.until(lambda: team.mail("user"), within="5s")
        with pytest.raises(StuckError, match="ann has no question"):
            team.reply("ann", "blue")
        team.kill()
        with pytest.raises(StuckError, match="Nothing is left that could happen"):
            team.until(lambda: False)


def test_a_blocking_tool_that_waits_for_others_is_told_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_loop, "LONGEST_THREAD_SECONDS", 0.1)
    come = threading.Event()

    def wait() -> str:
        """Wait for another."""
        return str(come.wait(20))

    with Team(tools=[wait]) as team:
        team.agent("ann")
        team.says("ann", call("wait"), "Well.")
        with pytest.raises(ToolFailedError, match=r"still runs after 0.1 real seconds.*make it `async def`"):
            team.ask("ann", "go")
        come.set()


def test_a_tool_that_opens_a_connection_is_told_that_there_are_none() -> None:
    async def connect() -> str:
        """Connect."""
        await asyncio.open_connection("127.0.0.1", 9)
        return "connected"

    with Team(tools=[connect]) as team:
        team.agent("ann")
        team.says("ann", call("connect"), "Well.")
        with pytest.raises(ToolFailedError, match=r"no network connections .* on virtual time"):
            team.ask("ann", "go")


def test_a_team_is_not_used_from_coroutines() -> None:
    async def main(team: Team) -> None:
        team.agent("ann")

    with Team() as team, pytest.raises(StateError, match=r"write `def test_…`, not `async def`"):
        asyncio.run(main(team))


def test_misuse_is_explained() -> None:
    with Team() as team:
        with pytest.raises(InvalidInputError, match="'soon' is not a length of time"):
            team.later("soon")
        with pytest.raises(InvalidInputError, match="is not a length of time"):
            team.later(-1)
        with pytest.raises(InvalidInputError, match=r"Say what ann answers: team.says\('ann', 'Done.'\)"):
            team.says("ann")
        with pytest.raises(InvalidInputError, match="7 is nothing that a model says"):
            team.says("ann", 7)  # type: ignore[arg-type]
        with pytest.raises(StateError, match="Kill it first"):
            team.restart()
        team.kill()
        with pytest.raises(StateError, match=r"killed.*team.restart\(\)"):
            team.mail()
        with pytest.raises(StateError, match=r"killed already"):
            team.kill()
        team.restart()
        with pytest.raises(StateError, match="at work already"):
            team.provide(pay)
    with pytest.raises(StateError, match="its test is over"):
        team.mail()
    with pytest.raises(InvalidInputError, match=r"no setting 'latncy'\. Did you mean 'latency'\? It has: words, tools"):
        Team(latncy=5)
    with Team(folders={"x": "/nowhere"}) as team, pytest.raises(InvalidInputError, match="is not there"):
        team.agent("ann")
    with pytest.raises(InvalidInputError, match="5 cannot speak for models"):
        Team(words=5)  # type: ignore[arg-type]


def test_a_conversation_script_is_played_in_virtual_time_with_crash_and_restart(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "rules:\n"
        "  - {agent: baker, turn: 0, tools: [{name: knead, arguments: {hours: 2}}]}\n"
        "  - {agent: baker, after_tool: knead, match: Outcome unknown, text: I do not know.}\n"
        "  - {text: Noted.}\n"
    )
    (tmp_path / "oven.py").write_text(
        "import asyncio\nfrom ai_whisperer import tool\n\n@tool\nasync def knead(hours: int) -> str:\n"
        '    "Knead."\n    await asyncio.sleep(hours * 3600)\n    return "kneaded"\n'
    )
    (tmp_path / "talk.txt").write_text(
        "rules rules.yaml\ntools oven.py\nagent baker\nagent ann\nann: Hello.\nexpect ann is Noted.\n"
        "baker: Bake.\nwait 1h\nexpect baker state is active\ncrash\nwait 3d\nrestart\n"
        "expect baker contains I do not know.\nwait 1d\n"
    )
    with Team(folder=tmp_path) as team:
        begun = team.now
        team.play("talk.txt")
        assert (team.now - begun).days == 4
        assert len(team.runs("knead")) == 1
        team.play("ann: Once more.\nexpect ann is Noted.\n")
        with pytest.raises(UnmetError, match=r"script, line 2: expect ann is Bye\.\nThere is: Noted\."):
            team.play("ann: Once more.\nexpect ann is Bye.\n")
        with pytest.raises(ScriptError, match=r"nothere.txt cannot be read"):
            team.play("nothere.txt")


def test_a_script_that_ends_with_a_crash_leaves_the_team_killed() -> None:
    with Team(words=lambda _: "Hello.") as team:
        team.play("agent ann\nann: Hi.\nexpect ann is Hello.\ncrash\n")
        with pytest.raises(StateError, match=r"killed"):
            team.mail()
        team.restart()
        assert team.answers("ann") == ["Hello."]
