import math

import pytest

from ai_whisperer.models.retry_after import retry_after_seconds

NOW = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC, a Tuesday


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("+7", 7.0),
        ("007", 7.0),
        ("0", 0.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1000000000", 1e9),
        ("9" * 300, float("9" * 300)),
        ("9" * 301, math.inf),
        ("9" * 100_000, math.inf),
        ("0" * 100_000 + "3", 3.0),
        ("0." + "3" * 100_000, 1 / 3),
    ],
)
def test_a_number_is_read_whatever_its_length(header: str, seconds: float) -> None:
    assert retry_after_seconds({"retry-after": header}, now=NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 23:14:20 +0100", 60.0),
        ("2023-11-14T22:14:20Z", 60.0),
        ("2023-11-14T22:14:20+00:00", 60.0),
        ("2023-11-14 22:14:20", 60.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Thu, 31 Dec 2099 23:59:59 GMT", 2_402_444_799.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 251_702_300_799.0),
    ],
)
def test_a_date_is_read_in_many_forms(header: str, seconds: float) -> None:
    expected = seconds if seconds < 1e6 else pytest.approx(seconds, rel=0.01)
    assert retry_after_seconds({"retry-after": header}, now=NOW) == expected


@pytest.mark.parametrize(
    "header",
    [
        "",
        " ",
        ".",
        "soon",
        "-1",
        "-0.5",
        "nan",
        "inf",
        "1e9",
        "0x10",
        "1,000",
        "7 seconds",
        "\u0667",
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Fri, 99 Foo 2099 99:99:99 GMT",
        "0001-01-01T00:00:00+23:59",
        "Tue, 14 Nov 2023 22:14:20 +9999999",
        "Tue, " * 10_000,
        "(" * 10_000,
    ],
)
def test_what_is_no_wait_asks_for_none(header: str) -> None:
    assert not retry_after_seconds({"retry-after": header}, now=NOW)


def test_milliseconds_come_first() -> None:
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "7"}, now=NOW) == 1.5
    assert retry_after_seconds({"retry-after-ms": "nan", "retry-after": "7"}, now=NOW) == 7.0
    assert retry_after_seconds({}, now=NOW) is None
