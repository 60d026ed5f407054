"""Pages: what each has to say of itself, and what it is given to load its data.

A page is one row of the table in `pages`: a path, a function that loads its data, and one that turns them into HTML.
The HTML and the JSON twin are two views of the same data, with the same query, rights and status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from ottla.client import ClientError
from ottla.client.errors import ResponseError, UnsupportedVersionError, error_name
from ottla.console.watcher import ClusterWatcher
from ottla.draw.markup import Markup

__all__ = [
    "BadQueryError",
    "Content",
    "Degraded",
    "Envelope",
    "NotFoundError",
    "Page",
    "PageContext",
    "Source",
    "one_page",
    "path_number",
]

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1_000
DIGITS_MAX: Final = 18
"""Of a number in a path; the largest offset has 19."""

D = TypeVar("D", bound=msgspec.Struct)
R = TypeVar("R")


class BadQueryError(Exception):
    """A query that the page does not understand; the text says why."""


class NotFoundError(Exception):
    """What the page is about does not exist."""

    def __init__(self, what: str, name: str, known: Iterable[str] = (), last: str = "", section: str = "") -> None:
        super().__init__(f'{what} "{name}" does not exist')
        self.what = what
        self.name = name
        self.known = tuple(known)
        """Names that exist, of which the nearest is offered."""
        self.last = last
        """What was last seen of it."""
        self.section = section or f"{what}s"
        """The first part of the addresses of its kind."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where figures come from, and how old they are."""

    what: str
    age_ms: int | None
    error: str | None = None


class Degraded(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that cannot be shown here, and what it would need."""

    what: str
    why: str


class PageContext(NamedTuple):
    """What a page is given."""

    watcher: ClusterWatcher
    names: Mapping[str, str]
    """The names in its path."""
    query: Mapping[str, str]
    now_ms: int
    form: Mapping[str, str] = MappingProxyType({})
    """What was posted to it."""

    def sources(self, *kinds: str) -> list[Source]:
        """Kinds of samples as sources, with their age."""
        return [self.source(kind) for kind in kinds]

    def source(self, kind: str) -> Source:
        at_ms = self.watcher.probed_ms(kind)
        failed_ms, error = self.watcher.state.errors.get(kind, (0, None))
        is_over = at_ms is not None and failed_ms < at_ms
        return Source(kind, None if at_ms is None else self.now_ms - at_ms, None if is_over else error)

    def asked(self, what: str, at_ms: int) -> Source:
        """What was asked for this page alone as a source."""
        return Source(what, self.now_ms - at_ms)

    def hidden(self, *kinds: str) -> list[Degraded]:
        """Which of these kinds of samples, or parts of them, this cluster does not show, and why."""
        found = [each for each in self.watcher.state.hidden if each.what.partition(".")[0] in kinds]
        return [Degraded(each.what, each.why or "") for each in found]

    def number(self, key: str, default: int, low: int, high: int) -> int:
        text = self.query.get(key)
        if text is None or text == "":
            return default
        try:
            value = int(text)
        except ValueError:
            raise BadQueryError(f"{key}={text} is not a number") from None
        if not low <= value <= high:
            raise BadQueryError(f"{key}={text} is not between {low:,} and {high:,}")
        return value

    def choice(self, key: str, choices: Iterable[str], default: str = "") -> str:
        text = self.query.get(key) or default
        known = list(choices)
        if text and text not in known:
            raise BadQueryError(f"{key}={text} is not one of {', '.join(known)}")
        return text


class Content(NamedTuple, Generic[D]):
    """The data of a page, and what is said about them."""

    data: D
    title: str
    sources: Sequence[Source]
    degraded: Sequence[Degraded] = ()
    live: tuple[str, ...] = ()
    """The changes after which the page is out of date: kinds (`group`) and subjects (`group:billing`)."""
    next: str | None = None
    """Where the list goes on."""
    reload_s: int | None = None
    """After so many seconds the page is loaded anew, because nothing tells when it is out of date."""


class Page(NamedTuple):
    name: str
    path: str
    """With names in braces: `/topics/{topic}`."""
    data: type[msgspec.Struct]
    load: Callable[[PageContext], Awaitable[Content[Any]]]
    render: Callable[[Content[Any], PageContext], Markup]
    query: frozenset[str] = frozenset()
    section: str = ""
    """The entry of the navigation that it belongs to."""
    form: frozenset[str] = frozenset()
    """The fields of what may be posted to it. Posting changes nothing, it only keeps bytes out of the address."""
    has_heading: bool = True
    """Whether the frame writes its title as a heading; else the page does so itself."""
    assets: tuple[str, ...] = ()
    """Styles and scripts of its own."""
    svg: Callable[[Content[Any], PageContext], str] | None = None
    """The page's drawing as a file of its own, under the page's path and `.svg`."""


class ClusterName(msgspec.Struct, frozen=True):
    id: str
    bootstrap: str
    principal: str


class Envelope(msgspec.Struct, Generic[D], frozen=True, omit_defaults=True):
    """A JSON twin."""

    schema: str
    cluster: ClusterName
    at_ms: int
    sources: Sequence[Source]
    degraded: Sequence[Degraded]
    data: D
    next: str | None = None
    outage: str | None = None


def one_page(rows: list[R], name_of: Callable[[R], str], context: PageContext) -> tuple[list[R], str | None]:
    """The rows after `?after=`, at most `?limit=`, and the name after which the list goes on. They come sorted."""
    limit = context.number("limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
    after = context.query.get("after", "")
    rest = [each for each in rows if not after or name_of(each) > after]
    shown = rest[:limit]
    return shown, name_of(shown[-1]) if len(rest) > limit else None


def path_number(context: PageContext, name: str) -> int:
    """A number in the path of a page."""
    text = context.names[name]
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise NotFoundError(name, text)
    return int(text)


def is_refused(error: ClientError) -> bool:
    """Whether the user lacks a right."""
    return isinstance(error, ResponseError) and error_name(error.code).endswith("_AUTHORIZATION_FAILED")


def why_not(error: ClientError, principal: str, needs: str = "") -> str:
    """Why something cannot be shown, in words for the reader; `needs` is the right that it takes."""
    if isinstance(error, UnsupportedVersionError):
        return f"not supported by this cluster: {error}"
    if is_refused(error):
        who = f" (you are {principal})" if principal else ""
        return f"needs {needs}{who}" if needs else f"not allowed: {error}{who}"
    return str(error)
