"""The pytest plugin, as somebody uses it who tests a team of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ai_whisperer.testing import story, team

pytest_plugins = ["pytester"]

LOADED = (story, team)
"""What a run within this process would load anew each time if it were not here."""

SHOP = '''
import sqlite3

class Shop:
    def __init__(self):
        self.paid = []

    def pay(self, invoice: str) -> str:
        """Pay an invoice."""
        self.paid.append(invoice)
        return f"paid {invoice}"
'''

CONFTEST = """
import pytest
from shop import Shop

@pytest.fixture
def shop():
    return Shop()

@pytest.fixture
def team(team, shop):
    team.provide(shop.pay)
    team.agent("clerk")
    return team
"""

TESTS = """
import pytest
from ai_whisperer.testing import call

def test_the_clerk_pays_once_though_the_process_dies(team, shop):
    team.says("clerk", call("pay", invoice="7"), "Paid.")
    task = team.begin("clerk", "Pay invoice 7.")
    team.until(lambda: team.runs("pay"))
    team.kill_and_restart(down_for="2h")
    team.ended(task)
    assert shop.paid == ["7"]

@pytest.mark.team(seeds=3, start="2027-03-01T08:00:00+01:00", latency="2s")
def test_hours_pass(team, team_seed):
    assert team.seed == team_seed
    team.later("2h")
    assert team.now.hour == 9

def test_a_script(team):
    team.says("clerk", "Hello.")
    team.play("talk.txt")

def test_that_fails(team):
    team.says("clerk", call("pay", invoice="8"), "Paid.", "Never said.")
    assert team.ask("clerk", "Pay invoice 8.") == "Not paid."

async def test_in_a_coroutine(team):
    pass

@pytest.mark.team(seeds="many")
def test_with_a_bad_seed(team):
    pass

@pytest.mark.team(sed=3)
def test_with_a_misspelt_seed(team):
    pass
"""


MISSPELT = """
import pytest

@pytest.mark.recording()
def test_no_path(team): pass

@pytest.mark.recording("x.wrec", "once")
def test_two_places(team): pass

@pytest.mark.recording("x.wrec", mode="all", ignore=["sytem"])
def test_ignored(team): pass

@pytest.mark.recording("x.wrec", mode="all", scrub="names")
def test_scrub(team): pass

@pytest.mark.recording("x.wrec", mode="all", ignore="system")
def test_that_is_fine(team): pass
"""


def test_what_a_marker_cannot_mean_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_misspelt=MISSPELT)
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=1, errors=4)
    result.stdout.fnmatch_lines(
        [
            "The marker `recording` of test_no_path: it takes the path of a recording, such as 'team.wrec', not ''",
            "*test_two_places: it takes one path, and the rest by name, such as mode='once': not 'once'",
            "*test_ignored: 'sytem' is nothing of a request that could be ignored. Did you mean 'system'?*",
            "*test_scrub: scrub must be a function that is given each text, not 'names'.",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


UNUSED = """
def test_with_an_answer_too_many(team):
    team.says("clerk", "Hello.", "Never said.")
    assert team.ask("clerk", "Hi.") == "Hello."

def test_with_one_that_is_optional(team):
    team.says("clerk", "Hello.")
    team.says("clerk", "Never said.", optional=True)
    assert team.ask("clerk", "Hi.") == "Hello."
"""


def test_an_answer_that_nobody_asks_for_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP, conftest=CONFTEST, test_shop=UNUSED)
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_shop.py, line 2: team.says('clerk', …) has 'Never said.'", "*optional=True*"])


def test_a_newcomers_tests_run_and_what_fails_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP, conftest=CONFTEST, test_shop=TESTS)
    pytester.maketxtfile(talk="clerk: Hi.\nexpect clerk is Hello.")
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=5, failed=1, errors=3)
    result.stdout.fnmatch_lines(
        [
            "*Not paid.*",
            "*what the team did*",
            "*clerk called pay(invoice=*8*",
            "nobody asked for what test_shop.py, line *'Never said.'",
        ]
    )
    result.stdout.fnmatch_lines(["*test_in_a_coroutine cannot be `async def`*"])
    result.stdout.fnmatch_lines(["*seeds of the marker `team` must be a whole number from 1 on, not 'many'*"])
    result.stdout.fnmatch_lines(["*test_with_a_misspelt_seed: A team has no setting 'sed'. Did you mean 'seed'? *"])


RECORDED = """
import pytest

def weigh(article: str) -> str:
    "Weigh."
    with open("weighed.txt", "a") as file:
        file.write(article)
    return "12 kg"

@pytest.mark.team(model="scripted:rules.yaml")
@pytest.mark.recording("weighed.wrec")
def test_recorded(team):
    team.agent("clerk", tools=[weigh])
    assert team.ask("clerk", "Weigh the box.") == "It weighs 12 kg."

@pytest.mark.recording("other.wrec", mode="never")
def test_with_a_bad_mode(team):
    pass

@pytest.mark.recording(path="other.wrec", modes="once")
def test_with_a_typo(team):
    pass
"""
RULES = """
rules:
  - {turn: 0, tools: [{name: weigh, arguments: {article: box}}]}
  - {after_tool: weigh, text: "It weighs {last}."}
"""


def test_a_recording_is_made_when_it_is_wanted_and_asked_alone_afterwards(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_scales=RECORDED)
    pytester.path.joinpath("rules.yaml").write_text(RULES)
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["*test_recorded: There is no recording *weighed.wrec*--recordings=once*"])
    result.stdout.fnmatch_lines(["*'never' is no mode of recordings. *There are: none, once, new, all.*"])
    result.stdout.fnmatch_lines(["*it has no 'modes'. Did you mean 'mode'? There are: mode, ignore, scrub.*"])
    for options in (["--recordings=once"], []):
        result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", "test_recorded", *options)
        result.assert_outcomes(passed=1, deselected=2)
    assert pytester.path.joinpath("weighed.txt").read_text() == "box"
    assert pytester.runpytest_inprocess("--recordings=nwe").ret == pytest.ExitCode.USAGE_ERROR


SHARED = """
import pytest

pytestmark = [pytest.mark.recording("shared.wrec"), pytest.mark.team(model="scripted:rules.yaml")]

def test_one(team):
    team.agent("ann", tools=[])
    assert team.ask("ann", "One.") == "Hello."

@pytest.mark.team(seeds=2)
def test_two(team):
    team.agent("ann", tools=[])
    assert team.ask("ann", "Two.") == "Hello."

@pytest.mark.team(recording="shared.wrec")
def test_wrong_marker(team):
    pass
"""


@pytest.mark.parametrize("mode", ["once", "new", "all"])
def test_a_recording_has_the_session_of_one_test(pytester: pytest.Pytester, mode: str) -> None:
    pytester.makepyfile(test_shared=SHARED)
    pytester.path.joinpath("rules.yaml").write_text("rules: [{text: Hello.}]")
    run = ("-q", "-p", "no:cacheprovider", f"--recordings={mode}", "-k")
    result = pytester.runpytest_inprocess(*run, "one or two")
    result.assert_outcomes(passed=1, failed=2, deselected=1)
    result.stdout.fnmatch_lines(["*It was recorded in this run, by test_one, * give this one a recording of its own*"])
    made = pytester.path.joinpath("shared.wrec").read_text()
    assert "One." in made
    assert "Two." not in made
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", "one").assert_outcomes(passed=1, deselected=3)
    pytester.path.joinpath("shared.wrec").unlink()
    pytester.runpytest_inprocess(*run, "two").assert_outcomes(passed=2, deselected=2)


def test_a_recording_in_the_marker_of_a_team_is_sent_to_the_other_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shared=SHARED)
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", "wrong")
    result.assert_outcomes(errors=1, deselected=3)
    result.stdout.fnmatch_lines(["*The marker `team` has no recording*: @pytest.mark.recording('shared.wrec').*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*TypeError*")


def test_the_plugin_loads_nothing_before_a_test_uses_it() -> None:
    program = (
        "import sys, ai_whisperer.testing.plugin; print([m for m in ('msgspec', 'apsw', 'yaml') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_who_has_no_pytest_can_use_a_team_all_the_same() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "from ai_whisperer.testing import Team\n"
        "with Team(words=lambda request: 'Hello.') as team:\n"
        "    team.agent('ann')\n"
        "    print(team.ask('ann', 'Hi.'))\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (told.stdout.strip(), told.stderr) == ("Hello.", "")
