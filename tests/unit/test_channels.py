from __future__ import annotations

import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ai_whisperer.core.channel_markers import Channel
from ai_whisperer.core.channels import ChannelDelta, ChannelParser, ParsedAnswer, parse
from ai_whisperer.core.reasoning_tags import (
    LoneCloserScanner,
    ReasoningScanner,
    after_reasoning,
    unopened_reasoning,
)
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.errors import StateError


def answer(
    *, analysis: str = "", commentary: str = "", final: str = "", wants_continuation: bool = False
) -> ParsedAnswer:
    return ParsedAnswer(
        response=ChannelResponse(analysis=analysis, commentary=commentary, final=final),
        wants_continuation=wants_continuation,
    )


def stream(chunks: list[str]) -> tuple[ParsedAnswer, list[ChannelDelta]]:
    parser = ChannelParser()
    deltas = [delta for chunk in chunks for delta in parser.feed(chunk)]
    deltas += parser.finish()
    return parser.parsed, deltas


def joined(deltas: list[ChannelDelta], channel: Channel) -> str:
    return "".join(delta.text for delta in deltas if delta.channel is channel)


def as_final(text: str) -> list[ChannelDelta]:
    return [ChannelDelta(Channel.FINAL, text)]


def test_text_without_markers_is_final() -> None:
    assert parse("Hello.\n\nHow are you?") == answer(final="Hello.\n\nHow are you?")


def test_an_empty_text_has_empty_channels() -> None:
    assert parse("") == answer()


def test_channels_lose_their_blank_edges() -> None:
    assert parse("\n  \n Hello. \n\n") == answer(final="Hello.")


def test_plain_text_is_streamed_at_once() -> None:
    parser = ChannelParser()
    assert parser.feed("Hel") == as_final("Hel")
    assert parser.feed("lo [") == as_final("lo [")
    assert parser.feed("x]\n") == as_final("x]\n")
    assert parser.finish() == []


def test_what_may_become_a_marker_is_held_back_until_it_is_clear() -> None:
    parser = ChannelParser()
    assert parser.feed("a\n  [FIN") == as_final("a\n")
    assert parser.feed("ISH] b") == as_final("  [FINISH] b")


def test_blanks_before_a_text_are_held_back_up_to_a_kilobyte() -> None:
    scanner = ReasoningScanner()
    told = [scanner.feed(" " * 100) for _ in range(100)]
    assert told[:10] == [("", "")] * 10
    assert told[10:] == [("", " " * 1_100)] + [("", " " * 100)] * 89
    assert scanner.finish() == ("", "")


@pytest.mark.parametrize(("blanks", "analysis"), [(1_024, "a"), (1_025, "")])
def test_reasoning_begins_after_as_many_blanks_as_are_held_back(blanks: int, analysis: str) -> None:
    text = "\n" * blanks + "<think>a</think>f"
    assert parse(text).response.analysis == analysis
    assert after_reasoning(text) == ("f" if analysis else text)
    for size in (1, 7, len(text)):
        assert stream([text[at : at + size] for at in range(0, len(text), size)])[0] == parse(text)


def test_the_text_after_a_marker_belongs_to_its_channel() -> None:
    text = "[ANALYSIS]\nthink\n[COMMENTARY] look\n[FINAL]done\nindeed"
    assert parse(text) == answer(analysis="think", commentary="look", final="done\nindeed")


def test_markers_count_in_any_case_and_after_blanks() -> None:
    assert parse("[Analysis]a\n \t[final]f") == answer(analysis="a", final="f")


def test_text_before_any_marker_is_final() -> None:
    assert parse("Hello.\n[ANALYSIS]a") == answer(analysis="a", final="Hello.")


def test_a_closing_marker_returns_to_final() -> None:
    assert parse("[ANALYSIS]\na\n[/ANALYSIS]\nf") == answer(analysis="a", final="f")


def test_the_closing_marker_of_the_open_channel_counts_within_a_line() -> None:
    text = "[ANALYSIS]a[/ANALYSIS] [FINAL]f[/FINAL]"
    assert parse(text) == answer(analysis="a", final="f")


def test_a_closing_marker_within_a_line_of_a_channel_that_is_not_open_is_text() -> None:
    assert parse("[ANALYSIS]a[/ANALYSIS]\nb[/FINAL]c") == answer(analysis="a", final="b[/FINAL]c")
    assert parse("[ANALYSIS]a[/FINAL]b") == answer(analysis="a[/FINAL]b")
    assert parse("a[/FINAL]b") == answer(final="a[/FINAL]b")


def test_a_marker_directly_after_a_marker_counts() -> None:
    assert parse("[ANALYSIS]a\n[/ANALYSIS][FINAL]f") == answer(analysis="a", final="f")


def test_pieces_of_a_channel_are_kept_on_lines_of_their_own() -> None:
    text = "[ANALYSIS]one[/ANALYSIS]\n[ANALYSIS]two[/ANALYSIS]f"
    assert parse(text) == answer(analysis="one\ntwo", final="f")


@pytest.mark.parametrize("text", ["x[FINAL] = 1", "see [FINAL](there)", "a [ANALYSIS] b", "[[FINAL]]", "[ FINAL]"])
def test_brackets_within_a_line_are_text(text: str) -> None:
    assert parse(text) == answer(final=text)


@pytest.mark.parametrize("text", ["[ANALYS", "[", "a\n[/FINAL", "[CONTINUE", "[FINALLY]"])
def test_what_only_looks_like_the_start_of_a_marker_is_text(text: str) -> None:
    assert parse(text) == answer(final=text)


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_reasoning_at_the_start_is_analysis(tag: str) -> None:
    assert parse(f"\n<{tag}>\nHm.\n</{tag}>\n\nYes.") == answer(analysis="Hm.", final="Yes.")


def test_reasoning_is_streamed_as_analysis_however_its_tags_are_split() -> None:
    parser = ChannelParser()
    assert parser.feed("<thi") == []
    assert parser.feed("nk>Hm") == [ChannelDelta(Channel.ANALYSIS, "Hm")]
    assert parser.feed(" a < b </th") == [ChannelDelta(Channel.ANALYSIS, " a < b ")]
    assert parser.feed("ink>Yes") == as_final("Yes")
    assert parser.finish() == []


def test_reasoning_that_does_not_end_is_no_answer() -> None:
    assert parse("<think>Hm, let me see") == answer(analysis="Hm, let me see")
    assert stream(["<think>Hm", " </thi"])[0] == answer(analysis="Hm </thi")


def test_reasoning_whose_opening_tag_is_missing_is_analysis() -> None:
    assert parse("Hm.\n</think>\n\n[COMMENTARY]c[/COMMENTARY]Yes.") == answer(
        analysis="Hm.", commentary="c", final="Yes."
    )
    assert stream(list("Hm.\n</think>\nYes."))[0] == answer(analysis="Hm.", final="Yes.")


@pytest.mark.parametrize(
    "text", ["Close it with </think> then.", "Write:\n```\n</think>\n```\nDone.", "See `<think>` there.", "<thinker>x"]
)
def test_what_only_speaks_of_reasoning_is_text(text: str) -> None:
    assert parse(text) == stream(list(text))[0] == answer(final=text)


@pytest.mark.parametrize("unit", ["</think>\n", "<think>\n", " ", "<think></think>\n"])
def test_a_flood_of_tags_or_blanks_is_read_in_time(unit: str) -> None:
    text = unit * 30_000
    assert stream([text[at : at + 5] for at in range(0, len(text), 5)])[0] == parse(text)


def test_markers_in_reasoning_do_not_count() -> None:
    assert parse("<think>\n[FINAL]no\n</think>yes") == answer(analysis="[FINAL]no", final="yes")


def test_continue_alone_on_a_line_asks_for_a_continuation_and_goes() -> None:
    assert parse("a\n[CONTINUE]\nb") == answer(final="a\nb", wants_continuation=True)
    assert parse("a\n \t[continue] \r\n") == answer(final="a", wants_continuation=True)
    assert parse("[CONTINUE]") == answer(wants_continuation=True)


def test_continue_beside_markers_alone_counts() -> None:
    text = "[FINAL]a[/FINAL] [CONTINUE]\nb\n[CONTINUE] [ANALYSIS]c"
    assert parse(text) == answer(analysis="c", final="a\nb", wants_continuation=True)


@pytest.mark.parametrize("text", ["[CONTINUE] please", "a [CONTINUE]", "[CONTINUE] [FIN", "[/CONTINUE]"])
def test_continue_beside_text_is_text(text: str) -> None:
    assert parse(text) == answer(final=text)


@pytest.mark.parametrize("fence", ["```", "````", "```python", "  ```"])
def test_a_marker_in_a_code_fence_is_text(fence: str) -> None:
    code = f"{fence}\n[ANALYSIS]\n``` x\n``\n[CONTINUE]\n```` \nafter"
    assert parse(f"See\n{code}\n[ANALYSIS]a") == answer(analysis="a", final=f"See\n{code}")


def test_a_fence_ends_only_with_as_many_backticks_as_it_began_with() -> None:
    text = "````\n```\n[ANALYSIS]\n````\n[ANALYSIS]a"
    assert parse(text) == answer(analysis="a", final="````\n```\n[ANALYSIS]\n````")


def test_a_fence_directly_after_a_marker_counts() -> None:
    assert parse("[FINAL]```\n[ANALYSIS]\n```") == answer(final="```\n[ANALYSIS]\n```")


def test_an_open_channel_is_not_closed_within_a_fence() -> None:
    assert parse("[FINAL]\n```\nx[/FINAL]\n```\n") == answer(final="```\nx[/FINAL]\n```")


def test_backticks_within_a_line_are_no_fence() -> None:
    assert parse("```x``` y\n[ANALYSIS]a") == answer(analysis="a", final="```x``` y")
    assert parse("``\n[ANALYSIS]a") == answer(analysis="a", final="``")
    assert parse("`a`\n`b`\n``\n[ANALYSIS]a") == answer(analysis="a", final="`a`\n`b`\n``")


def test_the_json_form_brings_the_channels() -> None:
    text = '{"analysis": "a", "commentary": "c", "final": "f\\n"}'
    assert parse(text) == answer(analysis="a", commentary="c", final="f")


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "\n ```JSON \r\n\n{}```\n"])
def test_the_json_form_may_stand_in_a_json_fence(fence: str) -> None:
    assert parse(fence.replace("{}", '{ "final": "f" }')) == answer(final="f")


@pytest.mark.parametrize(
    "asks",
    [
        '"continue": true',
        '"continuation": {"status": "CONTINUE", "reason": "more"}',
        '"continuation": {"status": "continue"}',
        '"continuation": "CONTINUE"',
    ],
)
def test_the_json_form_may_ask_for_a_continuation(asks: str) -> None:
    assert parse(f'{{{asks}, "final": "f"}}') == answer(final="f", wants_continuation=True)


@pytest.mark.parametrize(
    "rests", ['"continue": false', '"continuation": {"status": "TERMINATE"}', '"continuation": null']
)
def test_the_json_form_without_a_wish_to_continue_is_complete(rests: str) -> None:
    assert parse(f'{{"final": "f", {rests}}}') == answer(final="f")


def test_a_value_that_is_no_string_is_shown_as_json() -> None:
    text = '{"final": {"b": [1, 2.5, "é"]}, "analysis": 3, "commentary": null}'
    assert parse(text) == answer(analysis="3", final='{"b": [1, 2.5, "é"]}')


@pytest.mark.parametrize(
    "text",
    [
        '{"final": "f", "foo": 1}',
        '{"foo": 1, "final": "f"}',
        '{"continue": true}',
        '{"final": "f"} and more',
        '{"final": "f"',
        '{"final": NaN}',
        '{"final": 1e999}',
        "{}",
        "{",
        '["final"]',
        '```\n{"final": "f"}\n```',
        '```json5\n{"final": "f"}\n```',
        '```json\n{"final": "f"}',
        '```json\n{"final": "f"}\n```\nmore',
    ],
)
def test_json_of_another_kind_is_text(text: str) -> None:
    assert parse(text) == answer(final=text)


def test_json_of_another_kind_may_be_followed_by_markers() -> None:
    assert parse('{"final": "f"}\n[ANALYSIS]a') == answer(analysis="a", final='{"final": "f"}')


def test_the_json_form_is_held_back_until_the_end() -> None:
    parser = ChannelParser()
    assert parser.feed(' {"analysis": "a", ') == []
    assert parser.feed('"final": "f"}') == []
    assert parser.finish() == [ChannelDelta(Channel.ANALYSIS, "a"), ChannelDelta(Channel.FINAL, "f")]


def test_an_object_is_streamed_once_its_first_key_is_a_different_one() -> None:
    parser = ChannelParser()
    assert parser.feed('{ "fi') == []
    assert parser.feed("le") == as_final('{ "file')
    assert parser.feed('": 1}') == as_final('": 1}')


def test_nesting_beyond_what_can_be_decoded_is_text() -> None:
    depth = 10 * sys.getrecursionlimit()
    text = f'{{"final": {"[" * depth}{"]" * depth}}}'
    assert parse(text) == answer(final=text)


def test_lone_surrogates_do_no_harm_and_those_that_json_brings_in_are_mended() -> None:
    assert parse("\ud800[FINAL]") == answer(final="\ud800[FINAL]")
    assert parse(r'{"final": "hi \ud83d"}') == answer(final="hi \ufffd")


@pytest.mark.parametrize("unit", ["a", " ", "[", "`", "\n", "[FINAL][", "a\n", "{", "[CONTINUE]", "```\n", "[/final]"])
@pytest.mark.parametrize("prefix", ["", "[FINAL]x", '{"final": "'])
def test_a_long_text_in_single_characters_equals_the_whole(prefix: str, unit: str) -> None:
    text = prefix + unit * (30_000 // len(unit))
    assert stream(list(text))[0] == parse(text)


def test_a_long_answer_in_single_characters_is_fine() -> None:
    line = "Some words of prose, a [link](there) and `code`.\n"
    text = "[FINAL]" + line * ((1 << 17) // len(line))
    assert stream(list(text))[0] == answer(final=text.removeprefix("[FINAL]").strip())


def test_nothing_can_be_fed_after_the_end() -> None:
    parser = ChannelParser()
    parser.finish()
    assert parser.finish() == []
    with pytest.raises(StateError, match="already finished"):
        parser.feed("x")


def test_the_parsed_answer_cannot_be_read_before_the_end() -> None:
    with pytest.raises(StateError, match="finish"):
        _ = ChannelParser().parsed


BUILDING_BLOCKS = (
    *("[ANALYSIS]", "[/ANALYSIS]", "[commentary]", "[/Commentary]", "[FINAL]", "[/final]", "[CONTINUE]", "[FIN"),
    *("```", "````", "```json", "`", "\n", "\r\n", " ", "\t", "a", "b c", "[", "]", "/", "{", "}", '"', "\\", ":", ","),
    *("<think>", "</think>", "<thinking>", "</thinking>", "<", "</th", "ink>"),
    *('{"final":', '"analysis"', '"f"', '{"continue": true, "final": "f"}', "İ", "\u017f", "\ud800"),
)
texts = st.one_of(
    st.text(st.characters(codec=None)), st.lists(st.sampled_from(BUILDING_BLOCKS), max_size=30).map("".join)
)


@st.composite
def chunkings(draw: st.DrawFn) -> list[str]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(chunkings())
@example(["[FINAL]a[/FI", "NAL]", "[CONTINUE]", "\nb"])
@example(["<think>\n<", "0"])
def test_any_chunking_of_any_text_equals_the_whole(chunks: list[str]) -> None:
    parsed, deltas = stream(chunks)
    assert parsed == parse("".join(chunks))
    answered = max((at for at, delta in enumerate(deltas) if delta.reclassifies), default=0)
    for channel in (Channel.COMMENTARY, Channel.FINAL) if answered else Channel:
        assert joined(deltas[answered:], channel).strip() == getattr(parsed.response, channel)


@given(chunkings())
@example(["a\n", "  <", "/think", ">\t", " \n", "b"])
@example(["a\n</think", "ing>"])
@example(["```\n</think>\n```\n</think>\n"])
def test_a_closing_tag_without_an_opening_one_is_found_in_any_chunking(chunks: list[str]) -> None:
    whole, scanner = "".join(chunks), LoneCloserScanner()
    through = "".join([*map(scanner.feed, chunks), scanner.finish()])
    reasoning, rest = unopened_reasoning(whole)
    if rest is whole:
        assert (scanner.reasoning, through) == (None, whole)
    else:
        assert scanner.reasoning is not None
        assert scanner.reasoning.rstrip(" \t") == reasoning.rstrip(" \t")
        assert rest.startswith(scanner.rest)


def test_reasoning_without_an_opening_tag_is_taken_back_when_its_end_comes() -> None:
    parser = ChannelParser()
    assert parser.feed("Let me see.\nIt is") == as_final("Let me see.\nIt is")
    assert parser.feed(" 42.\n</thi") == as_final(" 42.\n")
    assert parser.feed("nk>") == []
    assert parser.feed("\n\nIt ") == [
        ChannelDelta(Channel.ANALYSIS, "", reclassifies=True),
        ChannelDelta(Channel.FINAL, "\n\nIt "),
    ]
    assert parser.feed("is 42.") == as_final("is 42.")
    parser.finish()
    assert parser.parsed == answer(analysis="Let me see.\nIt is 42.", final="It is 42.")


def test_a_tag_in_the_middle_of_a_line_or_within_code_takes_nothing_back() -> None:
    for text in ("It ends with </think>.\nSo.", "```\n</think>\n```\n</think>\nSo.", "</table>\n</thinker>\nSo."):
        parsed, deltas = stream(list(text))
        assert parsed == answer(final=text)
        assert not any(delta.reclassifies for delta in deltas)


def test_what_is_held_back_as_json_was_reasoning_if_a_closing_tag_follows() -> None:
    parsed, deltas = stream(['{"final": "f"}\n', "</think>\n", "So."])
    assert parsed.response.final == "So."
    assert deltas[0].channel is Channel.ANALYSIS
    assert joined(deltas, Channel.FINAL).strip() == "So."


@pytest.mark.parametrize(
    "text",
    [
        "Hi\n [ANALYSIS] a\n[CONTINUE]\n[/ANALYSIS]\n```\n[FINAL]\n```\n[COMMENTARY]c[/COMMENTARY]f\n[CONTINUE]",
        '```json\n{"analysis": "a", "final": "f", "continuation": {"status": "CONTINUE"}}\n```\n',
        " <think>a < b </thi </think>[FINAL]f",
        "a\n</think>\n\nf </think>",
    ],
)
def test_a_text_split_at_every_two_places_equals_the_whole(text: str) -> None:
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert stream([text[:first], text[first:second], text[second:]])[0] == parse(text)


prose = st.text(st.sampled_from("abc .,:;()é\n"), max_size=20)
sections = st.tuples(st.sampled_from(Channel), st.booleans(), prose, st.booleans())


@given(st.lists(sections, max_size=8))
def test_markers_and_the_wish_to_continue_never_show_in_a_channel(
    drawn: list[tuple[Channel, bool, str, bool]],
) -> None:
    lines: list[str] = []
    for channel, closed, text, continues in drawn:
        lines += [f"[{channel.upper()}]{text}", *([f"[/{channel}]"] if closed else [])]
        lines += ["[CONTINUE]"] if continues else []
    parsed = parse("\n".join(lines))
    assert parsed.wants_continuation == any(continues for *_, continues in drawn)
    for channel in Channel:
        assert (
            getattr(parsed.response, channel).split()
            == " ".join(text for named, _, text, _ in drawn if named is channel).split()
        )


@given(
    st.dictionaries(st.sampled_from(Channel), prose, min_size=1),
    st.sampled_from([{}, {"continue": False}, {"continue": True}, {"continuation": {"status": "CONTINUE"}}]),
    st.sampled_from(["{}", "```json\n{}\n```", "\n{}\n"]),
)
def test_the_json_form_never_shows_in_a_channel(
    values: dict[Channel, str], wish: dict[str, object], around: str
) -> None:
    parsed = parse(around.replace("{}", json.dumps({**wish, **values})))
    assert parsed.wants_continuation == (wish not in ({}, {"continue": False}))
    for channel in Channel:
        assert getattr(parsed.response, channel) == values.get(channel, "").strip()


@pytest.mark.parametrize("place", ["\n", "[", "`"])
def test_after_ten_thousand_places_nothing_is_a_marker_however_the_text_is_split(place: str) -> None:
    within = f"[ANALYSIS]a{place * 9_000}\n[FINAL]b"
    assert parse(within).response.final == "b"
    beyond = f"[ANALYSIS]a{place * 10_000}\n[FINAL]b"
    assert parse(beyond).response.final == ""
    assert parse(beyond).response.analysis.endswith("[FINAL]b")
    for size in (1, 777, 9_999):
        assert stream([beyond[at : at + size] for at in range(0, len(beyond), size)])[0] == parse(beyond)


def test_a_long_value_of_the_json_form_stays_as_it_was_written() -> None:
    numbers = "[" + "1,  " * 20_000 + "2]"
    text = f'{{"analysis": {{"a":1}}, "final": {numbers}, "continue": true}}'
    assert parse(text) == answer(analysis='{"a": 1}', final=numbers, wants_continuation=True)


def test_the_json_form_may_have_long_texts() -> None:
    text = json.dumps({"final": 'a "\u00e4"\n' * 20_000})
    assert parse(text).response.final == ('a "\u00e4"\n' * 20_000).strip()


@pytest.mark.parametrize("more", [', "other": 1}', "", "} and more"])
def test_long_json_of_another_kind_is_text(more: str) -> None:
    text = '{"final": "' + "x" * 20_000 + '"' + more
    assert parse(text) == answer(final=text)
