import pytest

from ai_whisperer.core.lifecycle import TRANSITIONS, Action, allowed, apply, takes_work
from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import StateError

PLAN = SleepPlan(until=10.0)


def agent(state: AgentState, *, started: bool = True, sleep: SleepPlan | None = None) -> AgentRecord:
    return AgentRecord(session_id="s", id="a", definition=AgentDefinition(), state=state, started=started, sleep=sleep)


def test_every_state_has_its_row_and_every_row_leads_to_a_state() -> None:
    assert set(TRANSITIONS) == set(AgentState)
    assert {target for row in TRANSITIONS.values() for target in row.values()} == set(AgentState)


def test_a_created_agent_can_only_be_started_or_stopped() -> None:
    assert allowed(agent(AgentState.IDLE, started=False)) == [Action.START, Action.STOP]


@pytest.mark.parametrize(
    ("state", "action", "target"),
    [
        (AgentState.IDLE, Action.WORK, AgentState.ACTIVE),
        (AgentState.IDLE, Action.PAUSE, AgentState.PAUSED),
        (AgentState.IDLE, Action.SLEEP, AgentState.SLEEPING),
        (AgentState.ACTIVE, Action.REST, AgentState.IDLE),
        (AgentState.ACTIVE, Action.PAUSE, AgentState.PAUSED),
        (AgentState.ACTIVE, Action.SLEEP, AgentState.ACTIVE),
        (AgentState.ACTIVE, Action.STOP, AgentState.STOPPED),
        (AgentState.PAUSED, Action.RESUME, AgentState.IDLE),
        (AgentState.SLEEPING, Action.WORK, AgentState.ACTIVE),
        (AgentState.STOPPED, Action.START, AgentState.IDLE),
    ],
)
def test_an_action_that_fits_leads_to_its_state(state: AgentState, action: Action, target: AgentState) -> None:
    before = agent(state, started=state is not AgentState.STOPPED)
    assert action in allowed(before)
    assert apply(before, action, plan=PLAN).state is target


@pytest.mark.parametrize(
    ("state", "actions"),
    [
        (AgentState.IDLE, {Action.REST, Action.RESUME, Action.WAKE}),
        (AgentState.ACTIVE, {Action.RESUME, Action.WAKE}),
        (AgentState.PAUSED, {Action.START, Action.WORK, Action.REST, Action.PAUSE, Action.SLEEP, Action.WAKE}),
        (AgentState.SLEEPING, {Action.START, Action.REST, Action.RESUME}),
        (AgentState.STOPPED, set(Action) - {Action.START, Action.STOP}),
    ],
)
def test_an_action_that_does_not_fit_is_refused_with_the_state_and_what_is_allowed(
    state: AgentState, actions: set[Action]
) -> None:
    before = agent(state, started=state is not AgentState.STOPPED)
    for action in actions:
        with pytest.raises(StateError, match=rf"Cannot {action} agent 'a': it is {state}.*Allowed now: "):
            apply(before, action, plan=PLAN)


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (AgentState.IDLE, Action.START),
        (AgentState.ACTIVE, Action.START),
        (AgentState.STOPPED, Action.STOP),
    ],
)
def test_an_action_that_would_change_nothing_changes_nothing(state: AgentState, action: Action) -> None:
    before = agent(state, started=state is not AgentState.STOPPED, sleep=PLAN if state is AgentState.ACTIVE else None)
    assert apply(before, action, reason="again") is before
    assert action not in allowed(before)


@pytest.mark.parametrize(("state", "way"), [(AgentState.PAUSED, "resume"), (AgentState.SLEEPING, "wake")])
def test_an_agent_that_rests_for_a_reason_is_not_started_but_the_way_out_is_named(state: AgentState, way: str) -> None:
    with pytest.raises(StateError, match=rf"Cannot start agent 'a': it is {state}.*Allowed now: .*{way}"):
        apply(agent(state, sleep=PLAN), Action.START)


def test_an_agent_without_a_sleep_cannot_be_woken() -> None:
    with pytest.raises(StateError, match="without a sleep to end"):
        apply(agent(AgentState.ACTIVE), Action.WAKE)


def test_a_busy_agent_that_is_put_to_sleep_sleeps_when_it_comes_to_rest() -> None:
    planned = apply(agent(AgentState.ACTIVE), Action.SLEEP, plan=PLAN)
    assert planned.state is AgentState.ACTIVE
    assert not takes_work(planned)
    assert apply(planned, Action.REST).state is AgentState.SLEEPING


def test_a_paused_sleeper_sleeps_on_after_resume() -> None:
    paused = apply(agent(AgentState.SLEEPING, sleep=PLAN), Action.PAUSE)
    assert apply(paused, Action.RESUME).state is AgentState.SLEEPING


def test_a_paused_sleeper_sleeps_on_for_the_reason_that_it_had() -> None:
    asleep = apply(agent(AgentState.IDLE), Action.SLEEP, plan=PLAN, reason="until I am needed")
    paused = apply(asleep, Action.PAUSE, reason="hold on")
    assert paused.reason == "hold on"
    assert apply(paused, Action.RESUME).reason == "until I am needed"


def test_what_an_agent_was_woken_for_is_told_while_it_works_and_not_at_rest() -> None:
    woken = apply(agent(AgentState.SLEEPING, sleep=PLAN), Action.WAKE, reason="the sleep time is over")
    working = apply(woken, Action.WORK)
    assert working.reason == "the sleep time is over"
    assert apply(working, Action.REST).reason == ""


def test_a_sleeper_that_answered_sleeps_on_for_the_reason_that_it_had() -> None:
    asleep = apply(agent(AgentState.IDLE), Action.SLEEP, plan=PLAN, reason="until I am needed")
    assert apply(apply(asleep, Action.WORK), Action.REST).reason == "until I am needed"


def test_waking_a_paused_sleeper_leaves_it_paused_without_a_sleep() -> None:
    paused = apply(agent(AgentState.SLEEPING, sleep=PLAN), Action.PAUSE)
    woken = apply(paused, Action.WAKE)
    assert (woken.state, woken.sleep) == (AgentState.PAUSED, None)
    assert apply(woken, Action.RESUME).state is AgentState.IDLE


def test_stopping_ends_the_sleep_and_keeps_the_reason() -> None:
    stopped = apply(agent(AgentState.SLEEPING, sleep=PLAN), Action.STOP, reason="enough")
    assert (stopped.state, stopped.sleep, stopped.started, stopped.reason) == (
        AgentState.STOPPED,
        None,
        False,
        "enough",
    )


@pytest.mark.parametrize("state", [AgentState.PAUSED, AgentState.SLEEPING, AgentState.STOPPED])
def test_only_idle_and_active_agents_take_work(state: AgentState) -> None:
    assert not takes_work(agent(state, started=state is not AgentState.STOPPED))
    assert not takes_work(agent(AgentState.IDLE, started=False))
    assert takes_work(agent(AgentState.IDLE))
    assert takes_work(agent(AgentState.ACTIVE))


def test_an_agent_stays_paused_for_its_limit_until_it_is_resumed() -> None:
    paused = apply(agent(AgentState.SLEEPING, sleep=PLAN), Action.PAUSE, limit="max_tokens")
    woken = apply(paused, Action.WAKE, reason="the sleep time is over")
    assert (paused.paused_limit, woken.paused_limit) == ("max_tokens", "max_tokens")
    assert apply(woken, Action.RESUME).paused_limit is None
    assert apply(woken, Action.STOP).paused_limit is None
