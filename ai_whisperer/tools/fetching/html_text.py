"""HTML as text that a model can read: headings, lists, links with their addresses, nothing that is not shown.

The scanner goes over the page once, whatever is in it: a page is written by strangers, and the parser of the standard
library takes quadratic time for some that are malformed on purpose. It goes in small steps, for while one is done no
other thread can run.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin

_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]{0,99})((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
_TAG_BEGINS = re.compile(r"</?[a-zA-Z]")
_ATTRIBUTE = re.compile(r"""(?<![^\s"'/])([a-zA-Z-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_MAX_ATTRIBUTES = 4_000
_MAX_LINK = 2_000
_MAX_LINK_TEXT = 20_000
_MAX_TAG = 512 << 10
_PIECE = 16 << 10
_LONGEST_NAME = 40
_NOT_SHOWN = ("script", "style", "noscript", "template", "svg", "iframe", "object", "canvas")
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_LINES = ("li", "tr", "dt", "dd")
_BLOCKS = {
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figcaption", "figure", "footer",
    "form", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "title", "ul", *_HEADINGS,
}  # fmt: skip
_BEFORE = {
    "li": "\n- ",
    "br": "\n",
    "td": " | ",
    "th": " | ",
    **{name: f"\n\n{mark} " for name, mark in _HEADINGS.items()},
}
_SPACE = re.compile(r"\s+")


def text_of_html(page: str, *, url: str) -> str:
    """The text of the page; links are written `[text](address)`, with the address made whole by `url`."""
    return _Scanner(page, url).run()


class _Scanner:
    def __init__(self, page: str, url: str) -> None:
        self._page = page
        self._base = url
        self._parts: list[str] = []
        self._link = ""
        self._link_at = 0
        self._depth_of_pre = 0
        self._unclosed: set[str] = set()

    def run(self) -> str:
        at = 0
        while at < len(self._page):
            begins = self._page.find("<", at)
            if begins < 0:
                begins = len(self._page)
            self._text(self._page[at:begins])
            at = self._after_mark(begins) if begins < len(self._page) else begins
        self._end_link()
        return _tidied("".join(self._parts))

    def _after_mark(self, at: int) -> int:
        """Deal with what begins with `<` and return where it ends. What has no end goes to the end of the page."""
        page = self._page
        if page.startswith("<!--", at):
            return _end_of(page, "-->", at + 4)
        if page.startswith(("<!", "<?"), at):
            return _end_of(page, ">", at)
        if not _TAG_BEGINS.match(page, at):
            self._text("<")
            return at + 1
        tag = _TAG.match(page, at, at + _MAX_TAG)
        if tag is None:
            return _end_of(page, ">", at + _MAX_TAG)
        name = tag[2].lower()
        if tag[1]:
            self._closed(name)
        elif name in _NOT_SHOWN:
            return self._after_hidden(name, tag.end())
        else:
            self._opened(name, tag[3][:_MAX_ATTRIBUTES])
        return tag.end()

    def _after_hidden(self, name: str, at: int) -> int:
        if name not in self._unclosed:  # or it would be looked for again and again
            closing = self._page.find("</", at)
            while closing >= 0:
                named = closing + 2 + len(name)
                if self._page[closing + 2 : named].lower() == name:
                    return _end_of(self._page, ">", named)
                closing = self._page.find("</", closing + 2)
            self._unclosed.add(name)
        return len(self._page) if name in ("script", "style") else at

    def _text(self, raw: str) -> None:
        ends_in_space = False
        for piece in pieces_of(raw):
            text = _unescaped(piece)
            if not self._depth_of_pre:
                text = _SPACE.sub(" ", text)
                text = text[1:] if ends_in_space and text.startswith(" ") else text
                ends_in_space = text.endswith(" ") if text else ends_in_space
            self._parts.append(text)

    def _opened(self, name: str, attributes: str) -> None:
        self._parts.append(_BEFORE.get(name) or _break(name))
        match name:
            case "pre":
                self._depth_of_pre += 1
            case "a":
                self._end_link()
                self._link, self._link_at = self._address(_attribute(attributes, "href")), len(self._parts)
            case "base":
                self._base = self._address(_attribute(attributes, "href")) or self._base
            case "img":
                self._text(_attribute(attributes, "alt"))

    def _closed(self, name: str) -> None:
        if name == "a":
            self._end_link()
        elif name == "pre":
            self._depth_of_pre = max(self._depth_of_pre - 1, 0)
        self._parts.append(_break(name))

    def _end_link(self) -> None:
        if self._link and sum(map(len, self._parts[self._link_at :])) > _MAX_LINK_TEXT:
            self._parts.append(f" ({self._link})")  # that is no name of a link
        elif self._link:
            shown = " ".join("".join(self._parts[self._link_at :]).split())
            if shown:
                del self._parts[self._link_at :]
                self._parts.append(f"[{shown}]({self._link})")
        self._link = ""

    def _address(self, written: str) -> str:
        """The whole address of a link; none for what leads nowhere else."""
        if not written or written.startswith("#") or len(written) > _MAX_LINK:
            return ""
        try:
            address = urljoin(self._base, written.strip())
        except ValueError:
            return ""
        return address.replace(")", "%29").replace(" ", "%20") if address.startswith(("http://", "https://")) else ""


def _break(name: str) -> str:
    return "\n\n" if name in _BLOCKS else "\n" if name in _LINES else ""


def _tidied(text: str) -> str:
    """The text without spaces at the ends of lines and without more than one empty line in a row."""
    lines: list[str] = []
    for line in _lines(text):
        stripped = line.rstrip()
        if stripped or (lines and lines[-1]):
            lines.append(stripped[1:] if stripped.startswith(" ") and not stripped.startswith("  ") else stripped)
    return "\n".join(lines).strip("\n")


def _lines(text: str) -> Iterator[str]:
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]


def pieces_of(text: str) -> Iterator[str]:
    """The text in pieces that are soon dealt with; none ends in the middle of what is written with `&`."""
    at = 0
    while at < len(text):
        end = at + _PIECE
        if end < len(text):
            end = max(text.rfind("&", end - _LONGEST_NAME, end), 0) or end
        yield text[at:end]
        at = end


def _end_of(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _attribute(attributes: str, name: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name:
            return _unescaped(found[2] or found[3] or found[4] or "")
    return ""


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text) if "&" in text else text
    except ValueError:
        return text  # a character number with thousands of digits
