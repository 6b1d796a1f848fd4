"""Pages as text: what is shown stays, and no page takes long."""

from __future__ import annotations

import html

import pytest

from ai_whisperer.tools.fetching.html_text import pieces_of, text_of_html

URL = "http://example.com/a/b"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("plain &amp; simple &lt;b&gt; &nbsp;", "plain & simple <b>"),
        ("<title>T</title><h1>One</h1><h3>Two</h3><p>Three", "T\n\n# One\n\n### Two\n\nThree"),
        ("<p>a<p>b<br>c<div>d</div>e", "a\n\nb\nc\n\nd\n\ne"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "| A | B\n| 1 | 2"),
        ("<pre>a\n  b\n\n\nc</pre>", "a\n  b\n\nc"),
        ("a \n\t b", "a b"),
        ("<a href=c>c</a> <a href='/d?x=1&amp;y=2'>d</a>", "[c](http://example.com/a/c) [d](http://example.com/d?x=1&y=2)"),
        ('<A HREF="http://x.example/(1)">x <b>y</b></A>', "[x y](http://x.example/(1%29)"),
        ("<a href=#top>top</a><a href=javascript:x()>js</a><a name=x>anchor</a>", "topjsanchor"),
        ("<base href=http://y.example/z/><a href=c>c</a>", "[c](http://y.example/z/c)"),
        ("<a href=c>one<a href=d>two", "[one](http://example.com/a/c)[two](http://example.com/a/d)"),
        ("<img alt='a cat' src=x>", "a cat"),
        ("a<script>if (a < b) { '</p>' }</script>b<style>p{}</style >c", "abc"),
        ("a<SCRIPT>x</Script>b<noscript>n</noscript>c<svg><text>s</text></svg>d", "abcd"),
        ("a<!-- b <p> -->c<!DOCTYPE html>d<?xml x?>e", "acde"),
        ("1 < 2 <3 << 4", "1 < 2 <3 << 4"),
        ("a<p title='>' data-x=\">\">b", "a\n\nb"),
        ("a<svg>b", "ab"),
        ("a<script>b", "a"),
        ("a<p ", "a"),
        ("a<!-- b", "a"),
        ("</p></a></pre></ul>a", "a"),
        ("&#65; &#x42; &#0; &#9999999999; &bogus;", "A B \ufffd \ufffd &bogus;"),
        ("&#" + "9" * 5000 + ";x", "&#" + "9" * 5000 + ";x"),
        ("<a href='http://[bad'>x</a>", "x"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_page_becomes_text(page: str, text: str) -> None:
    assert text_of_html(page, url=URL) == text


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<!", "<a ", '<a "', "<a x='", "<svg>", "<svg></svg", "<script>", "&", "&#9", " ", "x="]
)
def test_a_page_that_repeats_itself_is_gone_through_once(piece: str) -> None:
    """Quadratic time would be minutes here, and the test be ended for it."""
    text_of_html(piece * (400_000 // len(piece)), url=URL)
    text_of_html(f"<a {piece * (400_000 // len(piece))}>", url=URL)


@pytest.mark.parametrize("repeated", ["a  ", "&amp ", "&amp;", " \n", "x", "&lt;b ", "&notit;"])
def test_a_long_text_reads_as_if_it_were_dealt_with_at_once(repeated: str) -> None:
    raw = repeated * 20_000
    whole = " ".join(html.unescape(raw).split())
    assert " ".join(text_of_html(f"<p>{raw}</p>", url="").split(" ")).strip() == whole


def test_a_long_text_is_dealt_with_in_pieces() -> None:
    for raw in ("a  " * 100_000, "&amp " * 100_000, "&amp;" * 100_000, "&" * 100_000):
        pieces = list(pieces_of(raw))
        assert "".join(pieces) == raw
        assert max(map(len, pieces)) <= 16 << 10
        assert len(pieces) < len(raw) / 10_000


def test_what_is_far_too_long_for_the_name_of_a_link_is_text_with_an_address() -> None:
    text = text_of_html('<a href="http://a.example/">' + "word " * 10_000 + "word</a>", url="")
    assert text.endswith("word (http://a.example/)")
    assert text.startswith("word word")


def test_after_a_tag_that_is_far_too_long_the_page_goes_on() -> None:
    assert text_of_html("<a " + 'a"b"' * 200_000 + ">then</a> this", url="") == "then this"
