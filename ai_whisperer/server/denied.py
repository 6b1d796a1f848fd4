"""What somebody sees who is not let in: a sentence for programs, a page that says how to get in for browsers."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ai_whisperer.server.gate import Denial

_STYLE = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:12vh auto;max-width:38rem;padding:0 1rem}"
    "input{font:inherit;padding:.4rem;width:100%;box-sizing:border-box}button{font:inherit;margin-top:.6rem}"
)
_ENTRY = """<p>The address that <code>whisperer serve</code> printed when it started lets you in: it ends in
<code>?token=…</code>. <code>whisperer page</code> in the same folder prints it again. Or give the token here, and what
you asked for opens:</p>
<form method="get">{kept}<label>Token <input name="token" type="password" autocomplete="off" required></label>
<button>Open the page</button></form>
<p>Did you follow a link from another site in a browser that was let in before? Then <a href="">continue without it</a>:
that browser shows its token only to what this server itself leads to.</p>"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>AI Whisperer: access denied</title><style>{style}</style></head>
<body><main><h1>AI Whisperer</h1><p role="alert">{message}</p>{entry}</main></body></html>
"""
_WRONG_TOKEN = 401


def denied(request: HTTPConnection, denial: Denial) -> Response:
    """The answer to a request that is not let in."""
    wait = {} if denial.retry_after_seconds is None else {"Retry-After": str(denial.retry_after_seconds)}
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(f"{denial.message}\n", status_code=denial.status, headers=wait)
    entry = _ENTRY.format(kept=_kept(request)) if denial.status == _WRONG_TOKEN else ""
    page = _PAGE.format(style=_STYLE, message=escape(denial.message), entry=entry)
    return HTMLResponse(page, status_code=denial.status, headers={"Content-Security-Policy": _policy(), **wait})


def _kept(request: HTTPConnection) -> str:
    """What the address asks for behind its `?`: a form, which leads back to its own address, would leave that out."""
    asked = QueryParams(request.scope.get("query_string", b""))
    return "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in asked.multi_items()
        if name != "token"
    )


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
