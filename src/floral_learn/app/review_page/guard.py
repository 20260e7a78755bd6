"""Who may talk to the page: requests for this host, from this page, with its secret; what a browser may do; how long.

A connection on which no whole request comes ends after some seconds instead of staying open for ever.
"""

from __future__ import annotations

import asyncio
import ipaddress
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
BODY_SECONDS = 10.0  # in which a part of a body must come
SECONDS = 10.0  # from the first byte of a request, or from the beginning of a connection, to the last of its headers
_CLOSE = (b"connection", b"close")
_log = logging.getLogger("uvicorn.error")  # the server's own: one line on the terminal


class Guard:
    """ASGI middleware: wrong host, origin, secret or method, and large bodies are refused before the app sees them.

    Parameters
    ----------
    app : ASGI application
        What lies behind the guard; it sees paths without the secret.
    token : str
        First part of every path.
    port : int
        The port that the browser must name.
    hosts : iterable of str
        Names under which the page may be opened. An address in numbers is allowed where "*" is among them: a site
        that points its own name at this machine has a name, not a number.
    """

    def __init__(self, app: Any, *, token: str, port: int, hosts: Iterable[str]) -> None:
        self.app, self.token, self.port, self.hosts = app, token, port, frozenset(hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self.refusal(scope)
        if refused is not None:
            await _plain(send, *refused)
            return
        path = scope["path"][len(self.token) + 1 :]
        if not path:  # the page's own links are relative to an address that ends in a slash
            await _plain(send, 308, "The address ends in a slash.", [(b"location", f"/{self.token}/".encode())])
            return
        inner = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        body = _Body(receive)
        sending = _Sending(send, body)
        try:
            await self.app(inner, body, sending)
        except Exception as error:
            if os.environ.get("FLORAL_DEBUG"):
                raise
            _log.error(
                "a request could not be answered: %s", " ".join(f"{type(error).__name__}: {error}".split())[:300]
            )
            if not sending.started:
                await _plain(send, 500, "This went wrong here; answers that were called saved are stored.")

    def refusal(self, scope: Any) -> tuple[int, str] | None:
        """The status and the words with which a request is refused; None where it is let through."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self._known(hosts[0]):
            return 421, "This address does not belong to the page."
        own = f"http://{hosts[0]}"
        method = scope["method"]
        if "transfer-encoding" in headers:  # a body of unknown length, or of two lengths
            return 400, "Say how long this is (Content-Length), and nothing else."
        if any(origin != own for origin in headers.get("origin", [])):
            return 403, "Another site asked for this."
        # A link to the page may be opened from anywhere; everything else comes from the page itself.
        navigates = method == "GET" and headers.get("sec-fetch-mode", [""])[0] == "navigate"
        if not navigates and any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
            return 403, "Another site asked for this."
        if method not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are known here."
        if method == "POST":
            if headers.get("origin") != [own]:
                return 403, "Answers are taken from the page only."
            if headers.get("content-type", [""])[0].split(";")[0].strip().lower() != "application/json":
                return 415, "Answers are sent as application/json."
            lengths = headers.get("content-length", [])
            if len(lengths) != 1 or not lengths[0].isdecimal() or len(lengths[0]) > 9 or int(lengths[0]) > MOST_BYTES:
                return 413, "This is too long for an answer."
        given = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 404, "Open the address that floral review printed: it ends in a secret that this one lacks."
        return None

    def _known(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        if name.lower() in self.hosts:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return "*" in self.hosts


class _Body:
    """What a client sends: as if it had gone where its body is longer than it may be, or does not come."""

    def __init__(self, receive: Any) -> None:
        self.receive, self.read, self.whole, self.cut = receive, 0, False, False

    async def __call__(self) -> Any:
        if self.whole or self.cut:
            return await self.receive() if self.whole else {"type": "http.disconnect"}
        try:
            message = await asyncio.wait_for(self.receive(), BODY_SECONDS)
        except TimeoutError:
            message = {"type": "http.disconnect"}
        self.read += len(message.get("body", b""))
        self.whole = message["type"] == "http.request" and not message.get("more_body", False)
        self.cut = message["type"] == "http.disconnect" or self.read > MOST_BYTES
        return {"type": "http.disconnect"} if self.cut else message


class _Sending:
    """Send a reply with the guard's headers, and know whether it has begun."""

    def __init__(self, send: Any, body: _Body) -> None:
        self.send, self.body, self.started = send, body, False

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            kept = [(name, value) for name, value in message["headers"] if name.decode().title() not in HEADERS]
            closing = [_CLOSE] if self.body.cut else []  # what is left of the body is not read
            message = {**message, "headers": [*kept, *closing, *_encoded()]}
        await self.send(message)


async def _plain(send: Any, status: int, words: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    body = words.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [_CLOSE, *(more or [])]  # a body that was refused is not read
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_encoded()]})
    await send({"type": "http.response.body", "body": body})


def _encoded() -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class Waiting:
    """The connections that have begun a request and not ended its headers, by the client's address."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._ends: dict[Any, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI: the headers are here, so nothing is waited for any more."""
        if scope["type"] == "http" and scope.get("client") is not None:
            self.over(tuple(scope["client"]))
        await self.app(scope, receive, send)

    def begin(self, client: Any, transport: asyncio.Transport) -> None:
        """Close `transport` unless a request of `client` is whole in time."""
        if client not in self._ends:
            loop = asyncio.get_running_loop()
            self._ends[client] = loop.call_later(SECONDS, self._close, client, transport)

    def over(self, client: Any) -> None:
        """Stop waiting for `client`."""
        if (end := self._ends.pop(client, None)) is not None:
            end.cancel()

    def _close(self, client: Any, transport: asyncio.Transport) -> None:
        self._ends.pop(client, None)
        transport.abort()


def impatient_protocol(waiting: Waiting) -> type[asyncio.Protocol]:
    """uvicorn's protocol in pure Python, which tells `waiting` of connections and of bytes that come."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._client = tuple((transport.get_extra_info("peername") or ())[:2])
            waiting.begin(self._client, transport)

        def data_received(self, data: bytes) -> None:
            # While a request is answered, more bytes are its body, which has a limit of its own.
            if self.cycle is None or self.cycle.response_complete:
                waiting.begin(self._client, self.transport)
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.over(self._client)
            super().connection_lost(exc)

    return Impatient
