"""The outcome of scripts in the form that build servers read: a suite for each script, a case for each line of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct

from ai_whisperer.replay.playing import Played
from ai_whisperer.replay.script import Script

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(Struct, frozen=True, kw_only=True):
    """One thing that was tried: what was wrong with it, if something was, or that it was not tried any more."""

    title: str
    seconds: float = 0.0
    failure: str = ""
    skipped: bool = False


def cases_of(script: Script, played: Sequence[Played]) -> list[Case]:
    """A case for each line of a script."""
    done = [
        Case(title=f"{each.line.number}: {each.line.written}", seconds=each.seconds, failure=each.failure)
        for each in played
    ]
    left = script.lines[len(played) :]
    return done + [Case(title=f"{line.number}: {line.written}", skipped=True) for line in left]


def junit(outcomes: Mapping[str, Sequence[Case]]) -> str:
    """By the name of the script or the recording."""
    suites = ET.Element("testsuites")
    for name, cases in outcomes.items():
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=_text(name),
            tests=str(len(cases)),
            failures=str(sum(bool(each.failure) for each in cases)),
            skipped=str(sum(each.skipped for each in cases)),
            time=f"{sum(each.seconds for each in cases):.3f}",
        )
        for each in cases:
            case = _case(suite, name, each.title, seconds=each.seconds)
            if each.failure:
                ET.SubElement(case, "failure", message=_text(each.failure))
            elif each.skipped:
                ET.SubElement(case, "skipped")
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, name: str, title: str, *, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(name), name=_text(title), time=f"{seconds:.3f}")


def _text(text: str) -> str:
    """Without what XML cannot say."""
    return _NOT_IN_XML.sub("\ufffd", text)
