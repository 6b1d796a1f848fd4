"""The tables of the workload of growth say what was measured."""

from __future__ import annotations

from pathlib import Path

from bench import w10_growth
from bench.growth_plot import printed


def test_a_table_has_the_median_of_an_even_number_of_rounds() -> None:
    samples = {"agents 10": [{"a call": 1.0}, {"a call": 3.0}], "agents 100": [{"a call": 2.0}, {"a call": 6.0}]}
    assert w10_growth._table(samples, "agents") == {10: {"a call": 2.0}, 100: {"a call": 4.0}}


def test_a_printed_table_tells_how_much_each_value_has_grown() -> None:
    last = printed("agents", {10: {"a call": 2.0}, 100: {"a call": 5.0}}).splitlines()[-1]
    assert last.split() == ["a", "call", "2.000", "5.000", "2.50"]


def test_what_is_measured_can_be_called_in_a_process_of_its_own() -> None:
    for function, _, _ in w10_growth.TABLES.values():
        assert function.__module__ != "__main__"
        assert Path(w10_growth.__file__).with_name(f"{function.__module__.split('.')[-1]}.py").is_file()
