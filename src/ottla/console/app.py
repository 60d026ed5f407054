"""The console as an ASGI application: pages and their JSON twins, events, login, styles and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from difflib import get_close_matches
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.client import ClientError
from ottla.client.errors import ResponseError, error_name
from ottla.console.access import COOKIE, DRAWING_POLICY, HEADERS, Access
from ottla.console.addresses import NotANameError, decode_name, href
from ottla.console.events import TooManyViewersError, Viewer
from ottla.console.html.frame import frame, plain_frame
from ottla.console.html.parts import code
from ottla.console.page import BadQueryError, ClusterName, Content, Envelope, NotFoundError, Page, PageContext, why_not
from ottla.console.pages import PAGES
from ottla.console.watcher import ClusterWatcher, NotConnectedError, now_ms
from ottla.draw.document import asset, shared
from ottla.draw.markup import Markup, element, joined
from ottla.draw.svg import page_style

__all__ = ["make_app"]

LOGGER: Final = logging.getLogger(__name__)
TWIN: Final = ".json"
QUIET_S: Final = 15.0
"""A stream of events says something at least this often, so that dead connections are noticed."""
RETRY_MS: Final = 3_000
FORM_MAX_BYTES: Final = 4_096
SHARED_ASSETS: Final = {
    "ground.css": "text/css",
    "parts.css": "text/css",
    "switch.js": "text/javascript",
    "theme.js": "text/javascript",
}
DRAWN_ASSETS: Final = {"drawing.css": page_style}
OWN_ASSETS: Final = {"console.css": "text/css", "console.js": "text/javascript"}


def make_app(watcher: ClusterWatcher, access: Access) -> ASGIApp:
    """The console of one cluster."""
    console = _Console(watcher, access)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(watcher.run())
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    routes = [
        Route("/healthz", _alive),
        Route("/static/{name}", _static),
        Route("/login", console.login, methods=["GET", "POST"]),
        Route("/events", console.events),
        Route("/schema/{name}.json", console.schema),
    ]
    for page in PAGES:
        twin = "/overview" if page.path == "/" else page.path
        routes.append(Route(f"{twin}{TWIN}", console.guarded(partial(console.twin, page))))
        if page.svg is not None:
            routes.append(Route(f"{page.path}.svg", console.guarded(partial(console.svg, page))))
        routes.append(Route(page.path, console.guarded(partial(console.page, page))))
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPStatus.NOT_FOUND: _no_page, Exception: _fault}
    )
    return _with_headers(app, access)


def _with_headers(app: ASGIApp, access: Access) -> ASGIApp:
    """Refuses foreign names, and adds the headers that every answer has unless it brings its own."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                common = ((name.encode(), text.encode()) for name, text in HEADERS.items())
                message["headers"] = [*message["headers"], *(each for each in common if each[0] not in own)]
            await send(message)

        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if not access.is_known_host(host):
            text = f"the console does not answer to the name {host!r}; allow it with --allow-host {host}\n"
            await PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)(scope, receive, with_headers)
            return
        await app(scope, receive, with_headers)

    return guarded


class _Console:
    def __init__(self, watcher: ClusterWatcher, access: Access) -> None:
        self._watcher = watcher
        self._access = access

    # --- access -------------------------------------------------------------------------------------------------------

    def guarded(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Lets those in who have brought the token."""

        async def check(request: Request) -> Response:
            if self._access.is_session(request.cookies.get(COOKIE)):
                return await answer(request)
            token = request.query_params.get("token")
            if token is not None and self._access.is_token(token):
                return self._let_in(str(request.url.remove_query_params("token").replace(scheme="", netloc="")))
            if _wants_json(request):
                return _problem(HTTPStatus.UNAUTHORIZED, "log in first: open the address that the console has printed")
            return RedirectResponse(_login_address(request), HTTPStatus.SEE_OTHER)

        return check

    def _let_in(self, path: str) -> Response:
        target = path if path.startswith("/") and not path.startswith("//") else "/"
        answer = RedirectResponse(target, HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, self._access.cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def login(self, request: Request) -> Response:
        wanted = request.query_params.get("next", "/")
        if request.method == "GET":
            return _html(plain_frame("Log in", _login_form("")))
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > FORM_MAX_BYTES:
                return _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is no token")
        token = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
        if self._access.is_token(token):
            return self._let_in(wanted)
        return _html(plain_frame("Log in", _login_form("That is not the token of this console.")), HTTPStatus.FORBIDDEN)

    # --- pages --------------------------------------------------------------------------------------------------------

    async def page(self, page: Page, request: Request) -> Response:
        try:
            content, context = await self._load(page, request)
        except _KNOWN_ERRORS as error:
            return self._refused(error)
        twin = _twin_address(request)
        return _html(frame(page, content, context, page.render(content, context), twin))

    async def twin(self, page: Page, request: Request) -> Response:
        try:
            content, context = await self._load(page, request)
        except _KNOWN_ERRORS as error:
            status, text = _explained(error, self._watcher)
            return _problem(status, text)
        watcher = self._watcher
        envelope: Envelope[Any] = Envelope(
            schema=f"ottla.console/{page.name}@1",
            cluster=ClusterName(watcher.cluster_id, watcher.bootstrap_servers, watcher.principal),
            at_ms=context.now_ms,
            sources=content.sources,
            degraded=content.degraded,
            data=content.data,
            next=content.next,
            outage=None if watcher.outage is None else watcher.outage.why,
        )
        return Response(msgspec.json.encode(envelope), media_type="application/json")

    async def svg(self, page: Page, request: Request) -> Response:
        assert page.svg is not None
        try:
            content, _ = await self._load(page, request)
        except _KNOWN_ERRORS as error:
            return self._refused(error)
        headers = {"content-security-policy": DRAWING_POLICY}
        return Response(page.svg(content), media_type="image/svg+xml", headers=headers)

    async def _load(self, page: Page, request: Request) -> tuple[Content[Any], PageContext]:
        query = dict(request.query_params)
        for key in query:
            if key not in page.query:
                known = ", ".join(sorted(page.query)) or "none"
                raise BadQueryError(f"this page has no {key!r} in its query; it knows {known}")
        names = {key: decode_name(text) for key, text in request.path_params.items()}
        context = PageContext(self._watcher, names, query, now_ms())
        return await page.load(context), context

    def _refused(self, error: Exception) -> Response:
        status, text = _explained(error, self._watcher)
        parts = [element("p", text, class_="lead")]
        if isinstance(error, NotFoundError):
            parts += _nearest(error)
        return _html(plain_frame(_TITLES.get(status, "That did not work"), joined(parts)), status)

    async def schema(self, request: Request) -> Response:
        page = next((each for each in PAGES if each.name == request.path_params["name"]), None)
        if page is None:
            return _problem(HTTPStatus.NOT_FOUND, f"there are schemas of {', '.join(each.name for each in PAGES)}")
        schema = msgspec.json.schema(Envelope[page.data])  # type: ignore[name-defined]
        return Response(msgspec.json.encode(schema), media_type="application/schema+json")

    # --- events -------------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        if not self._access.is_session(request.cookies.get(COOKIE)):
            return _problem(HTTPStatus.UNAUTHORIZED, "log in first")
        wanted = [each for each in request.query_params.get("of", "").split(",") if each]
        stack = contextlib.ExitStack()
        try:
            viewer = stack.enter_context(self._watcher.events.viewer(wanted))
        except TooManyViewersError:
            busy = _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open; reload by hand")
            busy.headers["retry-after"] = "30"
            return busy
        return StreamingResponse(_stream(viewer, stack), media_type="text/event-stream")


async def _stream(viewer: Viewer, stack: contextlib.ExitStack) -> AsyncIterator[bytes]:
    with stack:
        yield f"retry: {RETRY_MS}\n\n".encode()
        async for changed in viewer.changes(QUIET_S):
            yield b"event: changed\ndata: " + msgspec.json.encode(changed) + b"\n\n" if changed else b": quiet\n\n"


# --- answers ----------------------------------------------------------------------------------------------------------

_KNOWN_ERRORS: Final = (BadQueryError, NotFoundError, NotANameError, NotConnectedError, ClientError)
_TITLES: Final = {
    HTTPStatus.BAD_REQUEST: "That address does not work",
    HTTPStatus.FORBIDDEN: "Not allowed",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.SERVICE_UNAVAILABLE: "The cluster does not answer",
}


def _explained(error: Exception, watcher: ClusterWatcher) -> tuple[HTTPStatus, str]:
    """The status and the words of an error that is not the console's fault."""
    match error:
        case NotFoundError():
            return HTTPStatus.NOT_FOUND, f"{str(error).capitalize()}." + (f" {error.last}" if error.last else "")
        case BadQueryError():
            return HTTPStatus.BAD_REQUEST, str(error)
        case NotANameError():
            return HTTPStatus.BAD_REQUEST, f"{str(error)!r} is not how the console writes a name in an address"
        case ResponseError() if error_name(error.code).endswith("_AUTHORIZATION_FAILED"):
            return HTTPStatus.FORBIDDEN, why_not(error, watcher.principal)
        case ClientError():
            return HTTPStatus.SERVICE_UNAVAILABLE, why_not(error, watcher.principal)
        case _:
            why = "" if watcher.outage is None else f": {watcher.outage.why}"
            return HTTPStatus.SERVICE_UNAVAILABLE, f"There is no connection to {watcher.bootstrap_servers}{why}"


def _nearest(error: NotFoundError) -> list[Markup]:
    near = get_close_matches(error.name, error.known, n=3, cutoff=0.5)
    links = [element("a", name, href=href(f"{error.what}s", name)) for name in near]
    return [element("p", "Did you mean ", joined(links, ", "), "?")] if links else []


def _html(text: str, status: int = HTTPStatus.OK) -> Response:
    return Response(text, status, media_type="text/html")


def _problem(status: HTTPStatus, text: str) -> Response:
    body = msgspec.json.encode({"error": text, "status": status.value})
    return Response(body, status, media_type="application/json")


def _wants_json(request: Request) -> bool:
    return request.url.path.endswith(TWIN)


def _login_address(request: Request) -> str:
    parts = urlsplit(str(request.url))
    wanted = parts.path + (f"?{parts.query}" if parts.query else "")
    return f"/login?next={quote(wanted, safe='')}"


def _twin_address(request: Request) -> str:
    path = "/overview" if request.url.path == "/" else request.url.path
    return f"{path}{TWIN}" + (f"?{request.url.query}" if request.url.query else "")


def _login_form(problem: str) -> Markup:
    field = element("input", type="password", name="token", id="token", autocomplete="off", required=True)
    form = element(
        "form",
        element("label", "Token", for_="token"),
        field,
        element("button", "Log in", type="submit", class_="tool"),
        method="post",
        class_="login",
    )
    told = element("p", problem, class_="outage", role="alert") if problem else None
    how = element("p", "The console has printed its token where it was started: ", code("?token=…"), " in the address.")
    return joined([each for each in (told, how, form) if each])


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name in DRAWN_ASSETS:
        return Response(DRAWN_ASSETS[name](), media_type="text/css")
    kinds: Mapping[str, str] = {**SHARED_ASSETS, **OWN_ASSETS}
    if name not in kinds:
        return _problem(HTTPStatus.NOT_FOUND, f"there is no {name}")
    text = shared(name) if name in SHARED_ASSETS else asset("ottla.console", name)
    return Response(str(text), media_type=kinds[name])


async def _no_page(request: Request, _: Exception) -> Response:
    if _wants_json(request):
        return _problem(HTTPStatus.NOT_FOUND, f"there is no page {request.url.path}")
    text = element(
        "p", "There is no page ", code(request.url.path), ". ", element("a", "To the overview", href="/"), "."
    )
    return _html(plain_frame("Not found", text), HTTPStatus.NOT_FOUND)


async def _fault(request: Request, error: Exception) -> Response:
    """A fault of the console: the reader gets a number, the log the whole story."""
    number = secrets.token_hex(4)
    LOGGER.error("fault %s on %s", number, request.url.path, exc_info=error)
    text = element("p", "The console has made a mistake. Its log has more under the number ", code(number), ".")
    return _html(plain_frame("A fault of the console", text), HTTPStatus.INTERNAL_SERVER_ERROR)
