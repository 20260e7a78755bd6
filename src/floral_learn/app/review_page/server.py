"""The review as a local web page: a starlette application behind a guard, served by uvicorn."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from floral_learn.app.review_page.asking import Asking, Refused
from floral_learn.app.review_page.guard import Guard, impatient_protocol
from floral_learn.app.review_page.shown_rows import LINE
from floral_learn.app.review_page.store import StoreError

_STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/question.js": ("question.js", "text/javascript; charset=utf-8"),
    "/known.js": ("known.js", "text/javascript; charset=utf-8"),
    "/dom.js": ("dom.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


def make_app(session: Asking, *, title: str, reviewer: str, folder: Path) -> Any:
    """The application: the page's files, questions, answers, pictures and the files of the end."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def page(name: str, kind: str) -> Any:
        content = files("floral_learn.app.review_page").joinpath("static", name).read_bytes()

        async def show(request: Any) -> Any:
            return Response(content, headers={"Content-Type": kind})

        return show

    def handle(what: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
        """What is asked for, or done, with what came in the address or in the body."""

        async def reply(request: Any) -> Any:
            try:
                sent = request.query_params if request.method != "POST" else await request.json()
                if request.method == "POST" and not isinstance(sent, dict):
                    raise ValueError("no object")
            except (ValueError, RecursionError):
                # nested without end, numbers of thousands of digits
                return JSONResponse({"error": "this is not JSON"}, status_code=400)
            except ClientDisconnect:
                return JSONResponse({"error": "the message did not come whole"}, status_code=400)
            try:
                return JSONResponse(await run_in_threadpool(what, sent))
            except Refused as error:
                return JSONResponse({"error": str(error)}, status_code=409)
            except StoreError as error:
                return JSONResponse({"error": str(error)}, status_code=507)

        return reply

    def about(query: Any) -> dict[str, Any]:
        return {"title": title, "reviewer": reviewer, **session.about()}

    def state(query: Any) -> dict[str, Any]:
        return {**session.state(_reviewer(query)), "folder": str(folder)}

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        label = sent.get("label")
        if not (label is None or isinstance(label, str)):
            raise Refused("an answer has a row (a number) and a label (text, or null)")
        said = session.answer(
            reviewer=_reviewer(sent), request=_request(sent), row=_row(sent), kind=str(sent.get("kind")), label=label,
            seen=sent.get("seen") is True, alone=sent.get("alone") is True,
        )  # fmt: skip
        told = {"saved": said.id, "row": said.row, "kind": said.kind, "label": said.label}
        return told | {"along": len(said.along)}

    def again(sent: dict[str, Any]) -> dict[str, Any]:
        return {"row": session.again(reviewer=_reviewer(sent), row=_row(sent)).row}

    def undo(sent: dict[str, Any]) -> dict[str, Any]:
        said = session.undo(reviewer=_reviewer(sent), request=_request(sent))
        return {"row": said.row, "kind": said.kind, "label": said.label}

    async def image(request: Any) -> Any:
        row, column = (request.path_params[name] for name in ("row", "column"))
        numbers = all(part.isdecimal() and len(part) < 12 for part in (row, column))
        small = "small" in request.query_params
        found = None
        if numbers:
            found = await run_in_threadpool(session.rows.image, int(row), int(column), small)
        if found is None:
            return Response("There is no picture to show.", status_code=404)
        return Response(found[0], headers={"Content-Type": found[1]})

    async def download(request: Any) -> Any:
        name = request.path_params["name"]
        if name not in [entry["name"] for entry in session.files["files"]]:
            return Response("There is no such file.", status_code=404)
        content = await run_in_threadpool((folder / name).read_bytes)
        # Saved, never opened: the report holds text from the data and runs under its own rules.
        headers = {"Content-Type": "application/octet-stream"}
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return Response(content, headers=headers)

    reading = {"about": about, "question": lambda query: session.question(_reviewer(query)), "state": state}
    writing = {"answer": answer, "again": again, "undo": undo, "finish": lambda sent: session.finish()}
    return Starlette(
        routes=[
            *(Route(path, page(*what), methods=["GET"]) for path, what in _STATIC.items()),
            *(Route(f"/api/{name}", handle(what), methods=["GET"]) for name, what in reading.items()),
            *(Route(f"/api/{name}", handle(what), methods=["POST"]) for name, what in writing.items()),
            Route("/image/{row}/{column}", image, methods=["GET"]),
            Route("/file/{name}", download, methods=["GET"]),
        ]
    )


class ReviewServer:
    """The page on a port of this machine.

    Parameters
    ----------
    session : Asking
        The review, or the judging.
    title, reviewer : str
        The table's name, and the name under which answers are stored unless the page is told another.
    folder : path
        Where the files of the end lie.
    host : str
        Address to listen on. Anything but this machine's own must be asked for.
    listening : socket, optional
        From `bind`; by default on any free port of `host`.
    """

    def __init__(
        self,
        session: Asking,
        *,
        title: str,
        reviewer: str,
        folder: Path,
        host: str = "127.0.0.1",
        listening: socket.socket | None = None,
    ) -> None:
        import uvicorn

        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.socket = bind(host, 0) if listening is None else listening
        self.port = self.socket.getsockname()[1]
        everywhere = host in ("0.0.0.0", "::", "")
        # On a network this machine has names that it does not know; what keeps others out is the secret.
        hosts = {"*"} if everywhere else {*_LOCAL, _bracketed(host)}
        application = make_app(session, title=title, reviewer=reviewer, folder=folder)
        guarded = Guard(application, token=self.token, hosts=hosts)
        shown = socket.gethostname() if everywhere else _bracketed(host)
        self.address = f"http://{shown}:{self.port}/{self.token}/"
        config = uvicorn.Config(
            guarded, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=2, timeout_keep_alive=30, http=impatient_protocol(),
        )  # fmt: skip
        self.server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until the process is told to stop (Ctrl-C)."""
        self.server.run(sockets=[self.socket])

    def stop(self) -> None:
        """Have `run` return, from another thread."""
        self.server.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; an OSError names host and port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(100)  # a browser may come before the server does, and waits
    except OSError as error:
        made.close()
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return made


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()


def _reviewer(sent: Any) -> str:
    name = sent.get("reviewer")
    name = " ".join(name.split()) if isinstance(name, str) else ""
    if not 0 < len(name) <= LINE or not name.isprintable():
        raise Refused(f"a reviewer's name has 1 to {LINE} characters")
    return name


def _request(sent: dict[str, Any]) -> str:
    request = sent.get("request")
    if not isinstance(request, str) or not 8 <= len(request) <= 80 or not request.isprintable():
        raise Refused("a request has a number of its own, 8 to 80 characters")
    return request


def _row(sent: dict[str, Any]) -> int:
    row = sent.get("row")
    if not isinstance(row, int) or isinstance(row, bool):
        raise Refused("an answer has a row (a number) and a label (text, or null)")
    return row
