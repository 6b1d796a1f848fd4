"""The outcome of scripts in the form that build servers read: a suite for each script, a case for each line of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from ai_whisperer.replay.playing import Played
from ai_whisperer.replay.script import Script

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcomes: Mapping[str, tuple[Script, Sequence[Played]]]) -> str:
    """By the name of the script."""
    suites = ET.Element("testsuites")
    for name, (script, played) in outcomes.items():
        failed = [each for each in played if each.failure]
        skipped = script.lines[len(played) :]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=_text(name),
            tests=str(len(script.lines)),
            failures=str(len(failed)),
            skipped=str(len(skipped)),
            time=f"{sum(each.seconds for each in played):.3f}",
        )
        for each in played:
            case = _case(suite, name, f"{each.line.number}: {each.line.written}", seconds=each.seconds)
            if each.failure:
                ET.SubElement(case, "failure", message=_text(each.failure))
        for line in skipped:
            ET.SubElement(_case(suite, name, f"{line.number}: {line.written}"), "skipped")
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, name: str, title: str, *, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(name), name=_text(title), time=f"{seconds:.3f}")


def _text(text: str) -> str:
    """Without what XML cannot say."""
    return _NOT_IN_XML.sub("\ufffd", text)
