"""An MCP server that behaves badly, in the way that its argument names. It knows no library."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}
GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "odd", "version": "1"},
}
LISTS: dict[str, list[Any]] = {
    "odd_tools": [
        {"name": "fine", "description": "d" * 10_000, "inputSchema": OBJECT},
        {"name": "a b/c", "description": "", "inputSchema": OBJECT},
        {"name": "a b.c", "description": None, "inputSchema": OBJECT},
        {"name": "x" * 150, "inputSchema": OBJECT},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "none"},
        {"name": "fine", "inputSchema": OBJECT},
        {"name": 7, "inputSchema": OBJECT},
        "nonsense",
        {"name": "huge", "inputSchema": {"type": "object", "properties": {"x": {"description": "y" * 100_000}}}},
    ],
}


def say(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    heard = json.loads(line)
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("a") as witness:
            witness.write(line)
    return heard if isinstance(heard, dict) else {}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def main() -> None:
    begin()
    while True:
        heard = hear()
        match heard.get("method"):
            case "initialize":
                say({"id": heard["id"], "result": greeting()})
                greeted()
            case "tools/list":
                tools = LISTS.get(MODE, [{"name": "act", "description": "Acts.", "inputSchema": OBJECT}])
                say({"id": heard["id"], "result": {"tools": tools}})
            case "tools/call":
                act(heard)
            case "resources/list" | "resources/templates/list" | "resources/read" as method:
                answer_about_resources(method, heard)


def greeting() -> dict[str, Any]:
    return {**GREETING, "capabilities": {"resources": {}}} if MODE == "resources" else GREETING


def answer_about_resources(method: str, heard: dict[str, Any]) -> None:
    match method, heard.get("params", {}).get("uri") or heard.get("params", {}).get("cursor"):
        case "resources/list", None:
            entries = [{"uri": "odd://a", "name": "a", "description": "d" * 5_000}, {"name": "no uri"}, 7]
            say({"id": heard["id"], "result": {"resources": entries, "nextCursor": "two"}})
        case "resources/list", _:
            say({"id": heard["id"], "result": {"resources": [{"uri": f"odd://{n}"} for n in range(2_000)]}})
        case "resources/read", "odd://a":
            contents = [{"uri": "odd://a", "text": "words"}, {"uri": "odd://a", "blob": "QUJDRA=="}, "nonsense"]
            say({"id": heard["id"], "result": {"contents": contents}})
        case "resources/read", "odd://nonsense":
            say({"id": heard["id"], "result": {"contents": "words"}})
        case _:
            say({"id": heard["id"], "error": {"code": -32602, "message": "there is no such thing"}})


def begin() -> None:
    if MODE in BEGINNINGS:
        BEGINNINGS[MODE]()


def exit_at_once() -> None:
    sys.exit("no licence was found for password=hunter2hunter2")


def wait() -> None:
    time.sleep(60)


def write_garbage() -> None:
    write("Welcome to the server!")
    write('{"jsonrpc": "2.0", "id": ')
    write("[1, 2]")
    write('{"jsonrpc": "2.0", "id": 99, "result": {}}')
    wait()


def write_garbage_for_ever() -> None:
    while True:
        write("nonsense " * 10)


def write_a_line_without_end() -> None:
    while True:
        sys.stdout.write("x" * 65_536)


def close_the_output() -> None:
    os.close(1)
    wait()


def greet_wrongly() -> None:
    say({"id": hear()["id"], "result": {"protocolVersion": "1999", "nonsense": True}})


def flood_stderr() -> None:
    sys.stderr.write("noise " * 1_000_000)


def stay() -> None:
    """Ignore that it is asked to end, and have children that would outlive it, one of them in a group of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "300"])
    apart = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid} {apart.pid}")
    del sys.argv[2]


def wait_for_the_file() -> None:
    while not Path(sys.argv[2]).exists():
        time.sleep(0.01)
    del sys.argv[2]


def exit_without_the_file() -> None:
    if not Path(sys.argv[2]).exists():
        sys.exit("the disk is missing")
    del sys.argv[2]


BEGINNINGS = {
    "waits_for_file": wait_for_the_file,
    "needs_file": exit_without_the_file,
    "exits": exit_at_once,
    "silent": wait,
    "garbage": write_garbage,
    "endless_garbage": write_garbage_for_ever,
    "huge_line": write_a_line_without_end,
    "closes_output": close_the_output,
    "wrong_greeting": greet_wrongly,
    "flooding_stderr": flood_stderr,
    "ignores_the_end": stay,
}


def greeted() -> None:
    if MODE == "asks_back":
        for number, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create", "ping")):
            say({"id": f"s{number}", "method": method, "params": {}})
    if MODE == "floods":
        for _ in range(20_000):
            say({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
            say({"method": "notifications/nonsense", "params": 1})


def answer_at_length(heard: dict[str, Any]) -> None:
    result = text("x" * 3_000_000)
    match heard["params"]["arguments"].get("text"):
        case "short":
            say({"id": heard["id"], "result": text("short")})
        case "id last":
            write(json.dumps({"result": result, "jsonrpc": "2.0", "id": heard["id"]}))
        case _:
            say({"id": heard["id"], "result": result})


def act(heard: dict[str, Any]) -> None:
    match MODE:
        case "dies_in_a_call":
            os._exit(3)
        case "hangs_in_a_call":
            return
        case "answers_oddly":
            say({"id": 12_345, "result": text("to nobody")})
            say({"id": heard["id"], "result": {"content": "no list"}})
        case "refuses":
            say({"id": heard["id"], "error": {"code": -32602, "message": "text must not be empty"}})
        case "all_kinds":
            say({"id": heard["id"], "result": ALL_KINDS})
        case "changes":
            LISTS[MODE] = [{"name": "other", "inputSchema": OBJECT}]
            say({"method": "notifications/tools/list_changed"})
            say({"id": heard["id"], "result": text("changed")})
        case "long_answers":
            answer_at_length(heard)
        case "ignores_the_end":
            say({"id": heard["id"], "result": text("still here")})
            while True:
                time.sleep(1)
        case _:
            say({"id": heard["id"], "result": text("acted")})


ALL_KINDS = {
    "content": [
        {"type": "text", "text": "words"},
        {"type": "image", "mimeType": "image/png", "data": "QUJDRA=="},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///b", "name": "bee"},
        {"type": "hologram"},
        "nonsense",
    ],
    "structuredContent": {"answer": 42},
    "isError": True,
}

if __name__ == "__main__":
    main()
