"""HTML as text that a model can read: headings, lists, links with their addresses, nothing that is not shown.

The scanner goes over the page once, whatever is in it: a page is written by strangers, and the parser of the standard
library takes quadratic time for some that are malformed on purpose.
"""

from __future__ import annotations

import html
import re
from urllib.parse import urljoin

_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]{0,99})((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
_TAG_BEGINS = re.compile(r"</?[a-zA-Z]")
_ATTRIBUTE = re.compile(r"""(?<![^\s"'/])([a-zA-Z-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_MAX_ATTRIBUTES = 4_000
_MAX_LINK = 2_000
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
        tag = _TAG.match(page, at)
        if tag is None:
            return len(page)
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
            closing = re.compile(f"</{name}", re.IGNORECASE).search(self._page, at)
            if closing is not None:
                return _end_of(self._page, ">", closing.end())
            self._unclosed.add(name)
        return len(self._page) if name in ("script", "style") else at

    def _text(self, raw: str) -> None:
        if raw:
            text = _unescaped(raw)
            self._parts.append(text if self._depth_of_pre else _SPACE.sub(" ", text))

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
        if self._link:
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
    for line in text.split("\n"):
        stripped = line.rstrip()
        if stripped or (lines and lines[-1]):
            lines.append(stripped[1:] if stripped.startswith(" ") and not stripped.startswith("  ") else stripped)
    return "\n".join(lines).strip("\n")


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
