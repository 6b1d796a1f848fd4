"""The command `whisperer`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ai_whisperer import __version__
from ai_whisperer.errors import WhispererError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="whisperer", description="A durable runtime for many AI agents that work at the same time."
    )
    parser.add_argument("--version", action="version", version=f"whisperer {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="watch a team of agents at work, pull the plug, and see it go on")
    demo.add_argument("--data", metavar="FOLDER", help="keep the session in this folder (default: a temporary one)")
    demo.add_argument(
        "--model", metavar="NAME", help="use this model, for instance openai-chat:NAME, not the scripted one"
    )
    given = parser.parse_args(arguments)
    from ai_whisperer.cli.demo.show import show

    try:
        return show(data=given.data, model=given.model)
    except WhispererError as error:
        print(f"whisperer: {error.message}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
