"""Whose turn it is to try a suspect: one at a time, in order, and never that of one who has gone."""

from __future__ import annotations

from ai_whisperer.runtime.life.trial_turn import TrialTurn


def test_the_turn_goes_on_in_the_order_in_which_it_was_asked_for() -> None:
    turn = TrialTurn()
    had: list[str] = []
    assert turn.take("a", lambda: had.append("a"))
    assert turn.take("a", lambda: had.append("a"))
    assert not turn.take("b", lambda: had.append("b"))
    assert not turn.take("c", lambda: had.append("c"))
    turn.give_back("a")
    assert had == ["b"]
    assert not turn.take("a", lambda: had.append("a"))
    turn.give_back("b")
    turn.give_back("c")
    assert had == ["b", "c", "a"]


def test_whoever_leaves_the_line_is_passed_over() -> None:
    turn = TrialTurn()
    had: list[str] = []
    turn.take("a", lambda: had.append("a"))
    turn.take("b", lambda: had.append("b"))
    turn.take("c", lambda: had.append("c"))
    turn.give_back("b")
    turn.give_back("a")
    assert had == ["c"]
    turn.give_back("c")
    assert turn.take("b", lambda: had.append("b"))
