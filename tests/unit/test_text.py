import pytest

from ai_whisperer.core.text import fitted


@pytest.mark.parametrize("limit", [0, 1, 24, 25, 26, 27, 50, 999])
@pytest.mark.parametrize("text", ["x" * 1000, "é" * 500])
def test_a_text_that_is_cut_fits_with_the_word_about_the_cut(text: str, limit: int) -> None:
    cut = fitted(text, limit)
    assert len(cut.encode()) <= limit
    assert cut.endswith("[cut: 1,000 bytes in all]") == (limit >= 26)
    assert text.startswith(cut.partition("\n")[0])


def test_a_text_within_the_limit_stays_as_it_is() -> None:
    assert fitted("é" * 5, 10) == "é" * 5
