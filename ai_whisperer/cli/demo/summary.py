"""The end of the demo in words."""

from __future__ import annotations

from collections.abc import Iterator

from ai_whisperer.cli.demo.account import Account
from ai_whisperer.cli.printable import shortened

_FAILURES_SHOWN = 5


def summary(account: Account) -> str:
    """What has come of it, then the figures."""
    return "\n".join([*_results(account), "", *_figures(account)])


def _results(account: Account) -> Iterator[str]:
    for name, result in account.results.items():
        yield ""
        yield f"{name}:"
        yield from (f"  {line}".rstrip() for line in (result or "There is no result.").splitlines())


def _figures(account: Account) -> Iterator[str]:
    yield from (f"failed: {shortened(failure)}" for failure in account.failed[:_FAILURES_SHOWN])
    if len(account.failed) > _FAILURES_SHOWN:
        yield f"failed: {len(account.failed) - _FAILURES_SHOWN} more"
    cost = "at a cost that is not known" if account.cost_usd is None else f"at a cost of ${account.cost_usd:.4f}"
    unfinished = f" ({account.unfinished} not finished)" if account.unfinished else ""
    yield (
        f"{account.completed} of {account.tasks} tasks completed{unfinished}, {account.mails} mails, "
        f"{account.model_requests} model requests, {account.tool_calls} tool calls, {account.tokens:,} tokens {cost}."
    )
    if account.plug_pulled:
        yield (
            f"When the plug was pulled, {account.finished_before} steps were finished: {account.repeated} of them were "
            f"done again, {account.lost} tasks, mails and steps were lost. {account.begun_anew} steps were in "
            "progress and were repeated."
        )
    else:
        yield "The plug was not pulled: there was too little left to do."
