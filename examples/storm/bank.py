"""A bank with a ledger, two tools for clerks, and what must never happen, whatever goes wrong."""

import asyncio
from collections import Counter
from contextlib import nullcontext

from ai_whisperer import ToolContext, tool
from ai_whisperer.storm import Log, invariant

LEDGER: list[str] = []
"""What was really paid, in this order. In a storm each universe has a ledger of its own."""


@tool(idempotent=True)
async def look_up(invoice: str, token: int | None = None) -> str:
    """Look whether an invoice is paid. If you hold its lock, give the token."""
    if invoice in LEDGER:
        return f"Invoice {invoice} is paid already."
    return f"Invoice {invoice} is open." if token is None else f"Invoice {invoice} is open. Pay it with token {token}."


@tool
async def pay(invoice: str, context: ToolContext, token: int | None = None) -> str:
    """Pay an invoice. With the token of the lock that is called like it, it is paid only while you hold that lock."""
    await asyncio.sleep(0.2)
    with nullcontext() if token is None else context.guard(invoice, token):
        LEDGER.append(invoice)
    return f"Paid invoice {invoice}."


@invariant
def no_invoice_is_paid_twice(log: Log) -> None:
    paid = Counter(LEDGER)
    clerks = [call.agent for call in log.calls("pay")]
    assert not paid or max(paid.values()) == 1, f"the ledger has {dict(paid)}, by {' and '.join(clerks)}"
