"""What a person's approval to a tool call is bound to, and which decisions there can be about one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec.structs import replace

from ai_whisperer.core.marks import said
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.mail import USER
from ai_whisperer.errors import InvalidInputError, StateError


def digest_of(tool: str, arguments: str) -> str:
    """What names this call of this tool with exactly these arguments."""
    return hashlib.sha256(f"{tool}\n{arguments}".encode(errors="surrogatepass")).hexdigest()


def is_listed(listed: Iterable[str], tool: str) -> bool:
    """Whether the tool is among those listed; a name that ends in `*` stands for all that begin so."""
    return any(tool.startswith(each[:-1]) if each.endswith("*") else tool == each for each in listed)


def approval_state(state: ApprovalState | str | None) -> ApprovalState | None:
    """The state that is asked for, None for all; raises `InvalidInputError`."""
    if state is None:
        return None
    if isinstance(state, str) and state in tuple(ApprovalState):
        return ApprovalState(state)
    raise InvalidInputError(f"state must be one of {', '.join(ApprovalState)}, or nothing for all, not {state!r}.")


def check_digest(approval: ApprovalRecord, digest: str | None) -> None:
    """Raise `StateError` unless the digest, if one is given, is that of the call."""
    if digest is None:
        return
    if not isinstance(digest, str):
        raise InvalidInputError(f"digest must be text, not {type(digest).__name__}.")
    if digest != approval.digest:
        raise StateError(
            f"The digest does not match approval {approval.id}: the call of '{approval.tool}' that waits is not "
            "the one you saw. Nothing was decided. Look at its arguments again."
        )


def decided(
    approval: ApprovalRecord, state: ApprovalState, *, at: float, by: str | None, reason: str
) -> ApprovalRecord:
    """The approval with the decision; the same record if it was decided so already.

    Raises `StateError` if it was decided otherwise.
    """
    if approval.state is state:
        return approval
    if approval.state is not ApprovalState.PENDING:
        why = f" ({approval.reason})" if approval.reason else ""
        raise StateError(
            f"Approval {approval.id} is {approval.state} already{why}. Nothing was changed; the call no longer waits."
        )
    return replace(approval, state=state, decided_at=at, decided_by=by, reason=reason)


def refusal_text(approval: ApprovalRecord) -> str:
    """What the model is told of a call that was refused."""
    words = f" They say: {said(approval.decided_by or USER, approval.reason)}" if approval.reason else ""
    return (
        f"Refused: a person did not allow this call of '{approval.tool}', and it was not run.{words}\n"
        "Do not repeat it as it is. Continue without it, or say what you would need it for."
    )
