"""Tags: what can be one, which nodes have those that a session needs, and what is told if none has."""

from __future__ import annotations

import pytest

from ai_whisperer.core.tags import checked_needs, having, nobody_has
from ai_whisperer.domain.nodes import MOST_TAGS
from ai_whisperer.errors import InvalidInputError

NODES = {"one": ("eu",), "two": ("eu", "gpu"), "three": ()}


def test_needs_are_kept_in_order_and_each_once() -> None:
    assert checked_needs(["gpu", "eu", "gpu"]) == ("eu", "gpu")
    assert checked_needs([]) == ()


@pytest.mark.parametrize("tag", ["", "two words", "-x", "a,b", "é", "a\0", "x" * 65, "x\n"])
def test_what_cannot_be_a_tag_is_refused(tag: str) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be a tag\. .*; nothing was changed"):
        checked_needs([tag])


def test_a_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(InvalidInputError, match=r"Give a list of tags, such as \['gpu'\]"):
        checked_needs("gpu")


def test_too_many_tags_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="32 tags at most, not 33"):
        checked_needs([f"t{number}" for number in range(MOST_TAGS + 1)])


def test_a_node_has_to_have_all_tags_that_are_needed() -> None:
    assert having(("eu",), NODES) == ["one", "two"]
    assert having(("eu", "gpu"), NODES) == ["two"]
    assert having(("tpu",), NODES) == []
    assert having((), NODES) == ["one", "two", "three"]


def test_if_none_has_them_it_is_told_which_node_has_which_and_what_to_do() -> None:
    assert nobody_has(("eu", "gpus"), NODES) == (
        "no node that takes sessions has the tags 'eu', 'gpus' ('one' has the tag 'eu'; 'two' has the tags 'eu', "
        "'gpu'; 'three' has no tags). Did you mean 'gpu'? Start one with it (whisperer serve --tags eu --tags gpus), "
        "or let the session need others (whisperer sessions needs)."
    )
