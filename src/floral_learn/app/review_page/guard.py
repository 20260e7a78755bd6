"""Who may talk to the page: requests for this host, from this page, with its secret; and what a browser may do."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Iterable
from typing import Any

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
MOST_BYTES = 64_000  # of a request's body
# from the first byte of a request, or from the beginning of a connection, to the last of its body
SECONDS = 10.0
_log = logging.getLogger("uvicorn.error")  # the server's own: one line on the terminal


class Guard:
    """ASGI middleware: wrong host, origin, secret or method, and large bodies are refused before the app sees them.

    Parameters
    ----------
    app : ASGI application
        What lies behind the guard; it sees paths without the secret.
    token : str
        First part of every path.
    hosts : iterable of str
        Names under which the page may be opened.
    """

    def __init__(self, app: Any, *, token: str, hosts: Iterable[str]) -> None:
        from starlette.middleware.trustedhost import TrustedHostMiddleware

        self.app, self.token = app, token
        self.checked = TrustedHostMiddleware(self._answer, allowed_hosts=sorted(hosts), www_redirect=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] != "http":
            return
        started = False

        async def sending(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _with_ours(message["headers"])}
            await send(message)

        try:
            await self.checked(scope, receive, sending)
        except Exception as error:
            if os.environ.get("FLORAL_DEBUG"):
                raise
            told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            _log.error("a request could not be answered: %s", told)
            if not started:
                await _plain(sending, 500, "This went wrong here; answers that were called saved are stored.")

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if (refused := self.refusal(scope)) is not None:
            await _plain(send, *refused)
            return
        path = scope["path"][len(self.token) + 1 :]
        if not path:  # the page's own links are relative to an address that ends in a slash
            await _plain(send, 308, "The address ends in a slash.", [(b"location", f"/{self.token}/".encode())])
            return
        await self.app({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, send)

    def refusal(self, scope: Any) -> tuple[int, str] | None:
        """The status and the words with which a request is refused; None where it is let through."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        own, method = f"http://{headers['host'][0]}", scope["method"]
        if "transfer-encoding" in headers:  # a body of unknown length, or of two lengths
            return 400, "Say how long this is (Content-Length), and nothing else."
        if any(origin != own for origin in headers.get("origin", [])):
            return 403, "Another site asked for this."
        # A link to the page may be opened from anywhere; everything else comes from the page itself.
        navigates = method == "GET" and headers.get("sec-fetch-mode", [""])[0] == "navigate"
        sites = set(headers.get("sec-fetch-site", []))
        if not navigates and sites - {"same-origin", "none"}:
            return 403, "Another site asked for this."
        if method not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are known here."
        if method == "POST":
            if headers.get("origin") != [own]:
                return 403, "Answers are taken from the page only."
            kind, *_ = headers.get("content-type", [""])[0].split(";")
            if kind.strip().lower() != "application/json":
                return 415, "Answers are sent as application/json."
            lengths = headers.get("content-length", [])
            length = lengths[0] if len(lengths) == 1 else ""
            if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
                return 413, "This is too long for an answer."
        given = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 404, "Open the address that the command printed: it ends in a secret that this one lacks."
        return None


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.decode().title() not in HEADERS]
    ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    return kept + ours


async def _plain(send: Any, status: int, words: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    body = words.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    headers.append((b"content-length", str(len(body)).encode()))
    headers += [(b"connection", b"close"), *(more or [])]  # a body that was refused is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def impatient_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol in pure Python, which closes connections whose request is not whole in time."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._over()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self._over()
            elif self._end is None:
                self._end = asyncio.get_running_loop().call_later(SECONDS, self.transport.abort)

        def _over(self) -> None:
            if self._end is not None:
                self._end.cancel()
                self._end = None

    return Impatient
