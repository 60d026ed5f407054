"""The console as an ASGI application: pages and their JSON twins, events, login, styles and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from difflib import get_close_matches
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, quote

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.client import ClientError
from ottla.client.errors import ResponseError, UnsupportedVersionError, error_name
from ottla.console.access import DRAWING_POLICY, HEADERS, POLICY, Access, Field, LoginError
from ottla.console.addresses import NotANameError, decode_name, href
from ottla.console.events import EventHub
from ottla.console.html.frame import frame, plain_frame
from ottla.console.html.parts import code
from ottla.console.page import BadQueryError, ClusterName, Content, Envelope, NotFoundError, Page, PageContext, why_not
from ottla.console.pages import PAGES
from ottla.console.pages.pipeline import REPORT_POLICY, report_of
from ottla.console.trail import pages_above
from ottla.console.watcher import ClusterWatcher, NotConnectedError, now_ms
from ottla.draw.document import asset
from ottla.draw.markup import NOTHING, Attribute, Markup, element, joined
from ottla.draw.svg import page_style

__all__ = ["make_app"]

LOGGER: Final = logging.getLogger(__name__)
TWIN: Final = ".json"
_OWN_PATH: Final = re.compile(r"/(?![/\\])")
"""A path of the console: browsers take two slashes, of either kind, for the name of another host."""
QUIET_S: Final = 15.0
"""A stream of events says something at least this often, so that dead connections are noticed."""
RETRY_MS: Final = 3_000
COOKIE: Final = "ottla-console"
LOGIN_MAX_BYTES: Final = 4_096
FORM_MAX_BYTES: Final = 4 * 1024 * 1024
ASSETS: Final = {
    "ottla.draw": ("ground.css", "parts.css", "switch.js", "theme.js"),
    "ottla.console": ("console.css", "console.js", "icon.svg"),
    "ottla.explain.render": ("page.css", "site.css", "page.js", "site.js"),
}
"""Package -> its styles and scripts."""
DRAWN_ASSETS: Final = {"drawing.css": page_style}
TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def make_app(access: Access, hosts: frozenset[str], *, is_secure: bool = False) -> ASGIApp:
    """The console of one cluster, under some names. A secure one is reached by https only."""
    console = _Console(access, is_secure=is_secure)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(access.run())
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
        Route("/logout", console.log_out, methods=["POST"]),
        Route("/events", console.events),
        Route("/schema/{name}.json", console.schema),
        Route("/pipeline/report/{run}", console.guarded(console.report)),
    ]
    for page in PAGES:
        twin = "/overview" if page.path == "/" else page.path
        methods = ["GET", "POST"] if page.form else ["GET"]
        routes.append(Route(f"{twin}{TWIN}", console.guarded(partial(console.twin, page)), methods=methods))
        if page.svg is not None:
            routes.append(Route(f"{page.path}.svg", console.guarded(partial(console.svg, page))))
        routes.append(Route(page.path, console.guarded(partial(console.page, page)), methods=methods))
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPStatus.NOT_FOUND: console.no_page, Exception: _fault}
    )
    return _with_headers(app, hosts)


def _with_headers(app: ASGIApp, hosts: frozenset[str]) -> ASGIApp:
    """Refuses foreign names, and adds the headers that every answer has unless it brings its own."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                others = ((name.encode(), text.encode()) for name, text in HEADERS.items())
                message["headers"] = [*message["headers"], *(each for each in others if each[0] not in own)]
            await send(message)

        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if host.lower() not in hosts:
            text = f"requests for host {host!r} are not allowed; allow them with --allow-host {host}\n"
            await PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)(scope, receive, with_headers)
            return
        await app(scope, receive, with_headers)

    return guarded


Answer = Callable[[Request, ClusterWatcher], Awaitable[Response]]
"""Answers a request of somebody who sees the cluster through this watcher."""


class _Console:
    def __init__(self, access: Access, *, is_secure: bool) -> None:
        self._access = access
        self._is_secure = is_secure

    # --- access -------------------------------------------------------------------------------------------------------

    def guarded(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """Lets those in who have logged in."""

        async def check(request: Request) -> Response:
            watcher = self._access.watcher_of(request.cookies.get(COOKIE))
            if "token" in request.query_params:
                bare = _path(request.url.remove_query_params("token"))
                if watcher is not None:
                    return RedirectResponse(bare, HTTPStatus.SEE_OTHER)
                with contextlib.suppress(LoginError):
                    return self._let_in(await self._access.log_in({"token": request.query_params["token"]}), bare)
            if watcher is not None:
                return await answer(request, watcher)
            if _wants_json(request):
                return _problem(HTTPStatus.UNAUTHORIZED, "log in first")
            return RedirectResponse(f"/login?next={quote(_path(request.url), safe='')}", HTTPStatus.SEE_OTHER)

        return check

    def _let_in(self, cookie: str, path: str) -> Response:
        target = path if _OWN_PATH.match(path) else "/"
        answer = RedirectResponse(target, HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=self._is_secure, path="/")
        return answer

    async def login(self, request: Request) -> Response:
        if request.method == "GET":
            return _html(plain_frame("Log in", _login_form(self._access, "")))
        try:
            form = await _form(request, {each.name for each in self._access.fields}, LOGIN_MAX_BYTES)
            cookie = await self._access.log_in(form)
        except BadQueryError as error:
            return _refused(error, None)
        except LoginError as error:
            return _html(plain_frame("Log in", _login_form(self._access, str(error))), HTTPStatus.FORBIDDEN)
        return self._let_in(cookie, request.query_params.get("next", "/"))

    async def log_out(self, request: Request) -> Response:
        self._access.log_out(request.cookies.get(COOKIE))
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    # --- pages --------------------------------------------------------------------------------------------------------

    async def page(self, page: Page, request: Request, watcher: ClusterWatcher) -> Response:
        try:
            content, context = await _load(page, request, watcher)
        except _KNOWN_ERRORS as error:
            return _refused(error, watcher, page.section)
        inner, above = page.render(content, context), pages_above(page.path, context.names)
        return _html(frame(page, content, context, inner, _twin_address(request), above))

    async def twin(self, page: Page, request: Request, watcher: ClusterWatcher) -> Response:
        try:
            content, context = await _load(page, request, watcher)
        except _KNOWN_ERRORS as error:
            return _problem(*_explained(error, watcher))
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

    async def svg(self, page: Page, request: Request, watcher: ClusterWatcher) -> Response:
        assert page.svg is not None
        try:
            content, context = await _load(page, request, watcher)
        except _KNOWN_ERRORS as error:
            return _refused(error, watcher)
        return Response(page.svg(content, context), media_type="image/svg+xml", headers={POLICY: DRAWING_POLICY})

    async def report(self, request: Request, watcher: ClusterWatcher) -> Response:
        """The report of a pipeline's run: a page of its own, with scripts inside, so that it gets a sandbox."""
        try:
            name = decode_name(request.path_params["run"])
            page = await asyncio.to_thread(report_of, watcher.pipelines, name)
        except _KNOWN_ERRORS as error:
            return _refused(error, watcher)
        return Response(page, media_type="text/html", headers={POLICY: REPORT_POLICY})

    async def no_page(self, request: Request, _: Exception) -> Response:
        """Who has logged in gets the navigation; who has not learns nothing about the cluster."""
        if _wants_json(request):
            return _problem(HTTPStatus.NOT_FOUND, f"page {request.url.path} does not exist")
        text = element("p", "Page not found: ", code(request.url.path), ". ", OVERVIEW, ".")
        watcher = self._access.watcher_of(request.cookies.get(COOKIE))
        return _html(plain_frame("Not found", text, watcher), HTTPStatus.NOT_FOUND)

    async def schema(self, request: Request) -> Response:
        page = next((each for each in PAGES if each.name == request.path_params["name"]), None)
        if page is None:
            return _problem(HTTPStatus.NOT_FOUND, f"known schemas: {', '.join(each.name for each in PAGES)}")
        schema = msgspec.json.schema(Envelope[page.data])  # type: ignore[name-defined]
        return Response(msgspec.json.encode(schema), media_type="application/schema+json")

    async def events(self, request: Request) -> Response:
        watcher = self._access.watcher_of(request.cookies.get(COOKIE))
        if watcher is None:
            return _problem(HTTPStatus.UNAUTHORIZED, "log in first")
        if watcher.events.is_full:
            busy = _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open; reload manually")
            busy.headers["retry-after"] = "30"
            return busy
        wanted = request.query_params.getlist("of")
        return StreamingResponse(_stream(watcher.events, wanted), media_type="text/event-stream")


async def _load(page: Page, request: Request, watcher: ClusterWatcher) -> tuple[Content[Any], PageContext]:
    query = dict(request.query_params)
    for key in query:
        if key not in page.query:
            known = ", ".join(sorted(page.query)) or "none"
            raise BadQueryError(f"unknown query parameter {key!r}; known: {known}")
    names = {key: decode_name(text) for key, text in request.path_params.items()}
    form = await _form(request, page.form, FORM_MAX_BYTES) if request.method == "POST" else {}
    context = PageContext(watcher, names, query, now_ms(), form)
    return await page.load(context), context


async def _stream(events: EventHub, wanted: list[str]) -> AsyncIterator[bytes]:
    with events.viewer(wanted) as viewer:
        yield f"retry: {RETRY_MS}\n\n".encode()
        async for changed in viewer.changes(QUIET_S):
            yield b"event: changed\ndata: " + msgspec.json.encode(changed) + b"\n\n" if changed else b": quiet\n\n"


async def _form(request: Request, fields: Container[str], bytes_max: int) -> dict[str, str]:
    """The fields of a form. BadQueryError if it has others, or is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise BadQueryError(f"that is more than {bytes_max:,} bytes")
    form = {name: texts[-1] for name, texts in parse_qs(body.decode(errors="replace")).items()}
    for name in form:
        if name not in fields:
            raise BadQueryError(f"this form has no field {name!r}")
    return form


# --- answers ----------------------------------------------------------------------------------------------------------

_KNOWN_ERRORS: Final = (BadQueryError, NotFoundError, NotANameError, NotConnectedError, ClientError)
OVERVIEW: Final = element("a", "Go to the overview", href="/")
_TITLES: Final = {
    HTTPStatus.BAD_REQUEST: "Bad request",
    HTTPStatus.FORBIDDEN: "Not allowed",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.SERVICE_UNAVAILABLE: "Cluster unreachable",
}


def _explained(error: Exception, watcher: ClusterWatcher | None) -> tuple[HTTPStatus, str]:
    """The status and the words of an error that is not the console's fault."""
    principal = "" if watcher is None else watcher.principal
    match error:
        case NotFoundError():
            text = str(error)
            return HTTPStatus.NOT_FOUND, f"{text[0].upper()}{text[1:]}." + (f" {error.last}" if error.last else "")
        case BadQueryError():
            return HTTPStatus.BAD_REQUEST, str(error)
        case NotANameError():
            return HTTPStatus.BAD_REQUEST, f"{str(error)!r} is not a valid name in a URL of the console"
        case ResponseError() if error_name(error.code).endswith("_AUTHORIZATION_FAILED"):
            return HTTPStatus.FORBIDDEN, why_not(error, principal)
        case ClientError():
            return HTTPStatus.SERVICE_UNAVAILABLE, why_not(error, principal)
        case _:
            why = "" if watcher is None or watcher.outage is None else f": {watcher.outage.why}"
            return HTTPStatus.SERVICE_UNAVAILABLE, f"No connection to the cluster{why}"


def _refused(error: Exception, watcher: ClusterWatcher | None, section: str = "") -> Response:
    status, text = _explained(error, watcher)
    parts = [element("p", text, class_="lead")]
    if isinstance(error, NotFoundError):
        parts += _nearest(error)
    parts.append(element("p", OVERVIEW))
    # A broker that answers with an error is reached.
    is_answered = status == HTTPStatus.SERVICE_UNAVAILABLE and isinstance(
        error, ResponseError | UnsupportedVersionError
    )
    title = "Request failed" if is_answered else _TITLES[status]
    return _html(plain_frame(title, joined(parts), watcher, section), status)


def _nearest(error: NotFoundError) -> list[Markup]:
    near = get_close_matches(error.name, error.known, n=3, cutoff=0.5)
    links = [element("a", name, href=href(error.section, name)) for name in near]
    return [element("p", "Did you mean ", joined(links, ", "), "?")] if links else []


def _html(text: str, status: int = HTTPStatus.OK) -> Response:
    return Response(text, status, media_type="text/html")


def _problem(status: HTTPStatus, text: str) -> Response:
    body = msgspec.json.encode({"error": text, "status": status.value})
    return Response(body, status, media_type="application/json")


def _wants_json(request: Request) -> bool:
    return request.url.path.endswith(TWIN)


def _path(url: URL) -> str:
    return url.path + (f"?{url.query}" if url.query else "")


def _twin_address(request: Request) -> str:
    path = "/overview" if request.url.path == "/" else request.url.path
    return f"{path}{TWIN}" + (f"?{request.url.query}" if request.url.query else "")


def _login_form(access: Access, problem: str) -> Markup:
    inputs = [
        element("label", each.label, element("input", type="password" if each.is_secret else "text", **_input(each)))
        for each in access.fields
    ]
    button = element("button", "Log in", type="submit", class_="tool")
    told = element("p", problem, class_="outage", role="alert") if problem else NOTHING
    form = element("form", *inputs, button, method="post", class_="filter")
    return joined([told, element("p", access.how, class_="lead"), form])


def _input(field: Field) -> dict[str, Attribute]:
    return {"name": field.name, "autocomplete": "off" if field.name == "token" else "on", "required": True}


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name in DRAWN_ASSETS:
        return Response(DRAWN_ASSETS[name](), media_type="text/css")
    package = next((package for package, names in ASSETS.items() if name in names), None)
    if package is None:
        return _problem(HTTPStatus.NOT_FOUND, f"{name} does not exist")
    return Response(str(asset(package, name)), media_type=TYPES[name.rpartition(".")[2]])


async def _fault(request: Request, error: Exception) -> Response:
    """Internal error: the reader gets a number, the log the whole story."""
    number = secrets.token_hex(4)
    LOGGER.error("fault %s on %s", number, request.url.path, exc_info=error)
    if _wants_json(request):
        return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"the console has failed; see its log, error {number}")
    text = element("p", "The console has failed. See its log, error ", code(number), ".")
    return _html(plain_frame("Internal error", text), HTTPStatus.INTERNAL_SERVER_ERROR)
