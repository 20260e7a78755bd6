"""Connections on which no whole request comes: they end after some seconds instead of staying open for ever."""

from __future__ import annotations

import asyncio
from typing import Any

SECONDS = 10.0  # from the first byte of a request, or from the beginning of a connection, to the last of its headers


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
