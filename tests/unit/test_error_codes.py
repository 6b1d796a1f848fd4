"""The codes of errors that the documentation promises are those that are sent."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer import errors
from ai_whisperer.errors import WhispererError
from ai_whisperer.protocol import jsonrpc
from ai_whisperer.protocol.catalog import method_named
from ai_whisperer.protocol.errors import from_rpc, stable_codes, to_rpc
from ai_whisperer.protocol.jsonrpc import RpcError
from ai_whisperer.protocol.openrpc import document

API = (
    Path(__file__).parents[2].joinpath("docs", "api.md").read_text().split("## Errors")[1].split("## Notifications")[0]
)
NUMBERS = {int(number) for number in re.findall(r"^\| (-\d+) \|", API, re.MULTILINE)}
CODES = {code: int(number) for code, number in re.findall(r"^\| `(\w+)` \| (-\d+) \|", API, re.MULTILINE)}
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WhispererError)]


def sent(error: RpcError) -> tuple[object, int]:
    assert error.data is not None
    return error.data["code"], error.code


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_is_sent_with_the_codes_of_the_docs_and_comes_back_as_itself(kind: type[WhispererError]) -> None:
    error = to_rpc(kind("That went wrong."))
    code, number = sent(error)
    assert CODES[str(code)] == number
    assert number in NUMBERS
    back = from_rpc(error.code, error.message, error.data)
    assert (type(back), back.message) == (kind, "That went wrong.")


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"{", "parse_error"),
        (b"\xff", "parse_error"),
        (b"", "parse_error"),
        (b"[]", "invalid_request"),
        (b"7", "invalid_request"),
        (b'{"id": 1}', "invalid_request"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', "invalid_request"),
        (b"[" * 70 + b"]" * 70, "invalid_request"),
        (b"[" + b"1," * 101 + b"1]", "invalid_request"),
    ],
)
def test_each_frame_that_is_refused_is_refused_with_the_codes_of_the_docs(frame: bytes, code: str) -> None:
    refused = jsonrpc.read_frame(frame, max_depth=64, max_batch=100).entries
    assert {sent(each.error) for each in refused if isinstance(each, jsonrpc.Refusal)} == {(code, CODES[code])}


def test_methods_and_params_that_are_wrong_are_refused_with_the_codes_of_the_docs() -> None:
    with pytest.raises(RpcError) as unknown:
        method_named("async.sendTasks")
    assert sent(unknown.value) == ("unknown_method", CODES["unknown_method"])
    with pytest.raises(RpcError) as misfit:
        method_named("async.sendTask").read_params(b'{"sessionId": 5}')
    assert sent(misfit.value) == ("invalid_params", CODES["invalid_params"])


def test_the_docs_name_no_code_that_is_never_sent() -> None:
    assert {each.code: each.number for each in stable_codes()} == CODES
    assert set(CODES.values()) == NUMBERS == {each["code"] for each in document("1.0")["components"]["errors"].values()}
    assert {kind.code for kind in KINDS} | set(jsonrpc.NAMES.values()) == set(CODES)


def codes_written_in(source: str) -> Iterator[str]:
    """The texts that source code writes for `code` in an object."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                is_code = isinstance(key, ast.Constant) and key.value == "code"
                if is_code and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def test_no_code_that_is_not_in_the_docs_is_written_where_errors_are_sent() -> None:
    package = Path(errors.__file__).parent
    sources = [*package.joinpath("server").rglob("*.py"), *package.joinpath("protocol").rglob("*.py")]
    assert {code for path in sources for code in codes_written_in(path.read_text())} <= set(CODES)


def test_a_code_that_is_written_out_would_be_found() -> None:
    source = 'raise RpcError(INVALID_REQUEST, message, {"code": "made_up", "path": "/ws"})'
    assert list(codes_written_in(source)) == ["made_up"]


def test_no_two_errors_have_the_same_code() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)
