"""The fields at the head of a template, between two lines `---`, and the line on which each of them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ai_whisperer.core.fields import Place
from ai_whisperer.core.text import mended
from ai_whisperer.errors import TemplateError

if TYPE_CHECKING:
    import yaml

_FENCE = "---"
_MAX_HEADER_CHARACTERS = 64 << 10


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """The two parts of a template file, apart."""

    header: str
    body: str


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """What the fields say, and the line of the file for each of them, nested ones too."""

    values: dict[str, Any]
    lines: dict[Place, int]


def fault(source: str, line: int, complaint: str) -> TemplateError:
    """The error that names the file and the line."""
    return TemplateError(f"{source}, line {line}: {complaint}")


def has_front_matter(text: str) -> bool:
    return text.partition("\n")[0].rstrip() == _FENCE


def split(text: str, source: str) -> FrontMatter:
    """The fields and the text below them; raises `TemplateError` if there are no two lines `---`."""
    if not has_front_matter(text):
        raise fault(source, 1, "a template begins with a line '---' and its fields after it.")
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        last = len(lines) if lines[-1] else len(lines) - 1
        raise fault(source, last, "the second line '---', which ends the fields, is missing.")
    header = "\n".join(lines[1:end])
    if len(header) > _MAX_HEADER_CHARACTERS:
        raise fault(
            source,
            end + 1,
            f"the fields have {len(header):,} characters, at most {_MAX_HEADER_CHARACTERS:,} are allowed. "
            "Put long text below the second line '---'.",
        )
    return FrontMatter(header=header, body="\n".join(lines[end + 1 :]).strip())


def read_fields(header: str, source: str) -> Fields:
    """Read the fields as YAML; raises `TemplateError` with the line for what is not YAML or is there twice."""
    import yaml

    try:
        loader = yaml.SafeLoader(header)
        try:
            node = loader.get_single_node()
            if node is None:
                return Fields(values={}, lines={})
            reader = _Reader(header, source, loader)
            reader.visit(node, ())
            values = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise fault(source, _line(header, mark.index if mark else 0), _complaint(error)) from error
    except yaml.reader.ReaderError as error:
        raise fault(source, _line(header, error.position), f"{error.reason}. Remove the character.") from error
    except (ValueError, RecursionError) as error:
        raise fault(source, 2, f"the fields cannot be read as YAML ({error}).") from error
    if not isinstance(values, dict):
        raise fault(source, 2, "the fields must be lines like 'name: analyzer'.")
    return Fields(values=values, lines=reader.lines)


class _Reader:
    """Notes the line of every value, and refuses what a reader of the file would overlook."""

    def __init__(self, header: str, source: str, loader: yaml.SafeLoader) -> None:
        self._header = header
        self._source = source
        self._loader = loader
        self._seen: set[int] = set()
        self.lines: dict[Place, int] = {}

    def visit(self, node: yaml.Node, place: Place) -> None:
        import yaml

        if id(node) in self._seen:
            self._refuse(node, "anchors and aliases ('&', '*') are not supported. Write the value out.")
        self._seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            self._check_text(node)
            self._check_value(node)
        self.lines.setdefault(place, self._line(node))
        if isinstance(node, yaml.MappingNode):
            self._visit_fields(node, place)
        elif isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.visit(item, (*place, number))

    def _visit_fields(self, node: yaml.MappingNode, place: Place) -> None:
        import yaml

        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or (not place and key.tag != "tag:yaml.org,2002:str"):
                self._refuse(key, "the fields must be lines like 'name: analyzer'.")
            self._check_text(key)
            inner = (*place, key.value)
            if inner in self.lines:
                self._refuse(
                    key, f"the field `{key.value}` is there already, on line {self.lines[inner]}. Remove one of them."
                )
            self.lines[inner] = self._line(key)
            self.visit(value, inner)

    def _check_text(self, node: yaml.ScalarNode) -> None:
        if mended(node.value) != node.value:
            self._refuse(node, "there is half of a character (a lone surrogate), which is not text. Remove it.")

    def _check_value(self, node: yaml.ScalarNode) -> None:
        try:
            self._loader.construct_object(node)
        except ValueError as error:
            self._refuse(node, f"'{node.value}' cannot be read ({error}). Put it in quotes if it is text.")

    def _line(self, node: yaml.Node) -> int:
        return _line(self._header, node.start_mark.index)

    def _refuse(self, node: yaml.Node, complaint: str) -> None:
        raise fault(self._source, self._line(node), complaint)


def _line(header: str, index: int) -> int:
    """The line of the file; the header begins on its second."""
    return header.count("\n", 0, index) + 2


def _complaint(error: yaml.MarkedYAMLError) -> str:
    hint = " Put text that has a colon in it in quotes." if "mapping values" in str(error.problem) else ""
    return f"{error.problem or 'not valid YAML'}.{hint}"
