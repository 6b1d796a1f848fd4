from ai_whisperer.server.guesses import Guesses

PER_MINUTE = 20


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def guesses() -> tuple[Guesses, Clock]:
    clock = Clock()
    return Guesses(PER_MINUTE, now=clock), clock


def wrong(found: Guesses, address: str | None) -> bool:
    """Whether a wrong token was looked at."""
    return found.seconds_to_wait(address) is None and found.was_wrong(address) is None


def test_one_address_has_its_tries_and_then_has_to_wait_a_few_seconds() -> None:
    found, clock = guesses()
    assert [wrong(found, "10.0.0.1") for _ in range(3_000)].count(True) == PER_MINUTE
    assert found.seconds_to_wait("10.0.0.1") == 3
    assert found.seconds_to_wait("10.0.0.2") is None
    clock.now += 3
    assert [wrong(found, "10.0.0.1") for _ in range(10)].count(True) == 1
    clock.now += 1_000
    assert [wrong(found, "10.0.0.1") for _ in range(3_000)].count(True) == PER_MINUTE


def test_a_right_token_is_looked_at_where_one_came_from_before_however_many_are_guessed_there() -> None:
    found, _ = guesses()
    found.was_right("127.0.0.1")
    answers = [found.was_wrong("127.0.0.1") for _ in range(100)]
    assert answers.count(None) == PER_MINUTE
    assert found.seconds_to_wait("127.0.0.1") is None


def test_many_addresses_together_have_no_more_tries_than_the_whole_server() -> None:
    found, _ = guesses()
    looked_at = sum(wrong(found, f"10.0.{number // 250}.{number % 250}") for number in range(5_000))
    assert looked_at == 20 * PER_MINUTE
    assert found.seconds_to_wait("192.0.2.1") == 1


def test_a_network_of_ipv6_and_the_ways_to_write_an_address_are_one() -> None:
    found, _ = guesses()
    looked_at = [wrong(found, f"2001:db8::{number:x}") for number in range(1, 100)]
    assert looked_at.count(True) == PER_MINUTE
    assert wrong(found, "2001:db8:0:1::1")
    for address in ("192.0.2.7", "::ffff:192.0.2.7") * 20:
        wrong(found, address)
    assert found.seconds_to_wait("::ffff:192.0.2.7") is not None
    assert [wrong(found, None) for _ in range(100)].count(True) == PER_MINUTE
    assert wrong(found, "::1")


def test_what_is_remembered_is_bounded() -> None:
    found, clock = guesses()
    for number in range(25_000):
        address = f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
        found.was_wrong(address)
        found.was_right(address)
        clock.now += 1
    assert len(found._of_address) == len(found._proven) == 10_000
