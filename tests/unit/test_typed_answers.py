"""What people type is read as what the field holds, whatever is in the names and in the options."""

from __future__ import annotations

from typing import Any

import pytest

from ai_whisperer.core.forms import fitted_answer, form_of
from ai_whisperer.core.typed_answers import typed_answer, typed_line
from ai_whisperer.errors import AnswerError

FORM = form_of(
    {
        "properties": {
            "days": {"type": "integer"},
            "sure": {"type": "boolean"},
            "a=b": {"type": "string"},
            "a": {"type": "string"},
            "meals": {"type": "array", "items": {"enum": ["Bread, butter", "bread", "soup", 1]}},
        }
    }
)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["days=3", "sure=Yes"], {"days": 3, "sure": True}),
        (["days=-3.0"], {"days": -3}),
        (["a=b=c"], {"a=b": "c"}),
        (["a=c=d"], {"a": "c=d"}),
        (["meals=soup, bread"], {"meals": ["soup", "bread"]}),
        (["meals=soup,bread, butter,1"], {"meals": ["soup", "Bread, butter", 1]}),
        (["meals=,"], {"meals": []}),
    ],
)
def test_words_are_read_as_what_their_fields_hold(words: list[str], answer: dict[str, Any]) -> None:
    assert fitted_answer(FORM, typed_answer(FORM, words)) == answer


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("days=2.5", "'days' must be a whole number, not 2.5"),
        ("days=many sure=maybe", "'sure' must be true or false, not 'maybe'"),
        ("meals=cake", "'meals' must be a list of"),
        ("dys=3", "did you mean 'days'?"),
        ("Rome", "write days=… sure=…"),
        ('a="Rome', "cannot be read"),
    ],
)
def test_what_means_nothing_in_its_field_is_refused_and_the_question_stays_open(line: str, complaint: str) -> None:
    with pytest.raises(AnswerError) as refused:
        fitted_answer(FORM, typed_line(FORM, line))
    assert complaint in refused.value.message
    assert "stays open" in refused.value.message
