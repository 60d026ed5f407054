"""The wire pages: what `ottla explain` has, with the console's navigation around it. No cluster is asked."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ottla.console.addresses import href
from ottla.console.html.wire import wire_tabs
from ottla.console.page import Content, NotFoundError, Page, PageContext
from ottla.draw.markup import Markup, joined
from ottla.explain.address import exact, path
from ottla.explain.assemble import error_page, message_page
from ottla.explain.lookup import NotFound, catalogue, find, find_error
from ottla.explain.page import CatalogueSection, ErrorPage, MessagePage, PageKind, PageRef, Part
from ottla.explain.prose import message_of
from ottla.explain.render.html import article
from ottla.explain.render.html_list import list_page
from ottla.explain.render.html_parts import PageLinks
from ottla.wire.index import MESSAGES

__all__ = ["PAGES"]

HOME: Final = "/wire"
ASSETS: Final = ("page.css", "site.css", "page.js", "site.js")
_WHICH: Final = re.compile(r"(?:(request|response)-)?v([0-9]{1,5})")


class Catalogue(msgspec.Struct, frozen=True):
    sections: tuple[CatalogueSection, ...]


def address(ref: PageRef) -> str:
    """The page of a message or an error: `/wire/api/ShareFetch/request-v2`."""
    return href("wire", *path(ref).removesuffix(".html").split("/"))


LINKS: Final = PageLinks(address, home=HOME)


# --- the list ---------------------------------------------------------------------------------------------------------


async def load_list(_: PageContext) -> Content[Catalogue]:
    return Content(Catalogue(catalogue()), "Kafka’s protocol", [])


def render_list(content: Content[Catalogue], _: PageContext) -> Markup:
    return joined([wire_tabs(HOME), list_page(content.data.sections, LINKS)])


# --- messages ---------------------------------------------------------------------------------------------------------


async def load_message(context: PageContext) -> Content[MessagePage]:
    ref = _ref(context)
    assert ref.version is not None
    page = message_page(message_of(ref), ref.version)
    return Content(page, page.title, [])


def _ref(context: PageContext) -> PageRef:
    """The page that the names in the path mean. A name alone means its usual version."""
    name, which = context.names["name"], context.names.get("which", "")
    try:
        found = find([name])[0]
    except NotFound as error:
        raise NotFoundError("message", name, last=f"{error.advice[:1].upper()}{error.advice[1:]}") from None
    if not which:
        return exact(found)
    match = _WHICH.fullmatch(which)
    if match is None:
        raise NotFoundError("version", which)
    ref = _with_part(found, match[1], int(match[2]))
    if ref is None or not MESSAGES[message_of(ref)].low <= int(match[2]) <= MESSAGES[message_of(ref)].high:
        raise NotFoundError("version", f"{name} {which}")
    return ref


def _with_part(found: PageRef, part: str | None, version: int) -> PageRef | None:
    is_api = found.kind == "api"
    if is_api != (part is not None):
        return None
    kind: PageKind = found.kind
    chosen: Part | None = "request" if part == "request" else "response" if part else None
    return PageRef(kind, found.name, chosen, version)


def render_message(content: Content[MessagePage], _: PageContext) -> Markup:
    return article(content.data, LINKS)


# --- errors -----------------------------------------------------------------------------------------------------------


async def load_error(context: PageContext) -> Content[ErrorPage]:
    name = context.names["name"]
    try:
        page = error_page(find_error(name).name)
    except NotFound as error:
        raise NotFoundError("error", name, last=str(error)) from None
    return Content(page, page.title, [])


def render_error(content: Content[ErrorPage], _: PageContext) -> Markup:
    return article(content.data, LINKS)


def _message(name: str, way: str) -> Page:
    return Page(name, way, MessagePage, load_message, render_message, section="wire", has_heading=False, assets=ASSETS)


PAGES: Final = (
    Page("wire", HOME, Catalogue, load_list, render_list, section="wire", has_heading=False, assets=ASSETS),
    Page(
        "wire-error", "/wire/error/{name}", ErrorPage, load_error, render_error,
        section="wire", has_heading=False, assets=ASSETS,
    ),
    *(
        _message(f"wire-{kind}{'' if '{which}' in rest else '-usual'}", f"/wire/{kind}/{rest}")
        for kind in ("api", "record", "header")
        for rest in ("{name}/{which}", "{name}")
    ),
)  # fmt: skip
