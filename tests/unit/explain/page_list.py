"""Every page, built once for all tests of this folder."""

from functools import cache

from ottla import explain
from ottla.explain.page import ErrorPage, MessagePage


@cache
def message_pages() -> tuple[MessagePage, ...]:
    pages = [explain.build(ref) for ref in explain.all_refs() if ref.kind != "error"]
    return tuple(page for page in pages if isinstance(page, MessagePage))


@cache
def error_pages() -> tuple[ErrorPage, ...]:
    pages = [explain.build(ref) for ref in explain.all_refs() if ref.kind == "error"]
    return tuple(page for page in pages if isinstance(page, ErrorPage))


def page_of(name: str, version: int) -> MessagePage:
    return explain.message_page(name, version)
