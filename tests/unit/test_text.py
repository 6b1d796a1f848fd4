import pytest

from ai_whisperer.core.text import PieceMender, fitted, mended


@pytest.mark.parametrize("limit", [0, 1, 24, 25, 26, 27, 50, 999])
@pytest.mark.parametrize("text", ["x" * 1000, "é" * 500])
def test_a_text_that_is_cut_fits_with_the_word_about_the_cut(text: str, limit: int) -> None:
    cut = fitted(text, limit)
    assert len(cut.encode()) <= limit
    assert cut.endswith("[cut: 1,000 bytes in all]") == (limit >= 26)
    assert text.startswith(cut.partition("\n")[0])


def test_a_text_within_the_limit_stays_as_it_is() -> None:
    assert fitted("é" * 5, 10) == "é" * 5


@pytest.mark.parametrize(
    ("text", "mended_text"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "\U0001f600"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        ("\U0001f600\ud83dx", "\U0001f600\ufffdx"),
    ],
)
def test_halves_of_a_pair_become_their_character_and_others_the_mark_of_what_is_lost(
    text: str, mended_text: str
) -> None:
    assert mended(text) == mended_text
    for size in (1, 2, 3):
        mender = PieceMender()
        pieces = [mender.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join((*pieces, mender.finish())) == mended_text
        assert all(piece.encode().decode() == piece for piece in pieces)
