"""The frame around every page: navigation, title, the age and source of its figures, and what cannot be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from ottla.console.html.navigation import crumbs
from ottla.console.html.parts import badge
from ottla.console.page import Content, Degraded, Page, PageContext, Source
from ottla.console.watcher import ClusterWatcher
from ottla.draw.document import document, footer, main
from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Severity
from ottla.health.phrases import duration

__all__ = ["SECTIONS", "frame", "plain_frame"]

SECTIONS: Final = (
    ("overview", "/", "Overview"),
    ("topics", "/topics", "Topics"),
    ("groups", "/groups", "Groups"),
    ("nodes", "/nodes", "Nodes"),
    ("quorum", "/quorum", "Quorum"),
    ("transactions", "/transactions", "Transactions"),
    ("security", "/security/acls", "Security"),
    ("wire", "/wire", "Wire"),
    ("live", "/live", "Live"),
    ("pipeline", "/pipeline", "Pipeline"),
)
"""The entries of the navigation."""
STALE_INTERVALS: Final = 3
STYLES: Final = ("ground.css", "parts.css", "drawing.css", "console.css")
SCRIPTS: Final = ("switch.js", "console.js")


def frame(
    page: Page,
    content: Content[Any],
    context: PageContext,
    inner: Markup,
    twin: str,
    above: Iterable[tuple[str, str]] = (),
) -> str:
    """A whole document. `above` are the titles and addresses of the pages above it."""
    watcher = context.watcher
    name = cluster_name(watcher)
    about = element(
        "div",
        crumbs(above) if page.has_heading else NOTHING,
        _status(watcher, content.sources),
        element("a", "JSON", href=twin, class_="twin-link"),
        class_="status",
    )
    body = main(
        _outage(watcher, context.now_ms),
        about,
        element("h1", content.title) if page.has_heading else NOTHING,
        inner,
        _hidden(content.degraded),
        _sources(content.sources),
        data_live=urlencode([("of", each) for each in content.live]) or None,
        data_reload=content.reload_s,
    )
    bar = _bar(watcher, page.section, name)
    again = _reload(content.reload_s) if "follow" in context.query else NOTHING
    return _document(f"{content.title} · {name}", joined([bar, body, footer()]), page.assets, again)


def plain_frame(title: str, inner: Markup, watcher: ClusterWatcher | None = None, section: str = "") -> str:
    """A document without figures, for the login and for errors; those who have logged in see the navigation."""
    if watcher is None:
        brand = element("a", element("strong", "ottla"), class_="brand", href="/")
        bar, name = element("header", brand, _switch(), class_="top"), "ottla"
    else:
        name = cluster_name(watcher)
        bar = _bar(watcher, section, name)
    return _document(f"{title} · {name}", joined([bar, main(element("h1", title), inner), footer()]))


def cluster_name(watcher: ClusterWatcher) -> str:
    return watcher.cluster_id or watcher.bootstrap_servers


def _reload(seconds: int | None) -> Markup:
    """The script loads a part of the page anew; without scripts the browser loads all of it, for those who follow."""
    if seconds is None:
        return NOTHING
    return element("noscript", element("meta", http_equiv="refresh", content=seconds))


def _document(title: str, body: Markup, assets: Sequence[str] = (), more: Markup = NOTHING) -> str:
    files = [*assets, *STYLES[1:], *SCRIPTS]
    styles = [
        element("link", rel="stylesheet", href=f"/static/{name}") for name in (STYLES[0], *files) if _is_style(name)
    ]
    theme = joined([element("link", rel="icon", href="/static/icon.svg"), element("script", src="/static/theme.js")])
    scripts = [element("script", src=f"/static/{name}", defer=True) for name in files if not _is_style(name)]
    return document(title, "A Kafka cluster in the browser.", joined([*styles, theme, *scripts, more], "\n"), body)


def _is_style(name: str) -> bool:
    return name.endswith(".css")


def _bar(watcher: ClusterWatcher, section: str, name: str) -> Markup:
    brand = element("a", element("strong", "ottla"), " ", element("span", name), class_="brand", href="/")
    items = [_entry(watcher, each, path, title, is_current=each == section) for each, path, title in SECTIONS]
    nav = element("nav", element("ul", *items), class_="sections", aria_label="Sections")
    return element("header", brand, nav, _switch(), class_="top")


def _entry(watcher: ClusterWatcher, section: str, path: str, title: str, *, is_current: bool) -> Markup:
    count = _bad(watcher) if section == "overview" else 0
    told = element("b", str(count), class_="count", title=f"{count} open findings") if count else NOTHING
    return element("li", element("a", title, told, href=path, aria_current="page" if is_current else None))


def _bad(watcher: ClusterWatcher) -> int:
    return sum(each.is_open and each.severity is not Severity.NOTICE for each in watcher.state.findings)


def _switch() -> Markup:
    return element("button", "◐", type="button", class_="theme", aria_label="Colours: system", hidden=True)


# --- honest figures ---------------------------------------------------------------------------------------------------


def _status(watcher: ClusterWatcher, sources: Sequence[Source]) -> Markup:
    ages = [each.age_ms for each in sources if each.age_ms is not None]
    oldest = max(ages, default=None)
    who = joined([badge(watcher.principal), " ", _log_out()]) if watcher.principal else NOTHING
    if not sources:
        return joined([badge("read only"), " ", who])
    told = "no data yet" if oldest is None else f"{duration(oldest)} old"
    is_stale = any(_is_stale(watcher, each) for each in sources)
    return joined([badge("read only"), " ", who, " ", badge(told, "warning" if is_stale else "")])


def _log_out() -> Markup:
    button = element("button", "Log out", type="submit", class_="plain")
    return element("form", button, method="post", action="/logout", class_="inline")


def _is_stale(watcher: ClusterWatcher, source: Source) -> bool:
    interval_s = watcher.intervals_s.get(source.what)
    return interval_s is not None and (source.age_ms or 0) > max(5_000, STALE_INTERVALS * 1000 * interval_s)


def _outage(watcher: ClusterWatcher, now_ms: int) -> Markup:
    outage = watcher.outage
    if outage is None:
        return NOTHING
    wait = max(0, outage.retry_ms - now_ms)
    text = joined(
        [
            "The cluster has been unreachable since ",
            moment(outage.since_ms),
            f" ({duration(now_ms - outage.since_ms)}): {outage.why}. Retrying in {duration(wait)}. "
            "The data below is from before.",
        ]
    )
    return element("p", text, class_="outage", role="status")


def _hidden(degraded: Sequence[Degraded]) -> Markup:
    if not degraded:
        return NOTHING
    items = [element("li", element("b", each.what), " ", each.why) for each in degraded]
    return element(
        "details",
        element("summary", f"Not visible here ({len(items)})"),
        element("ul", *items),
        class_="hidden",
    )


def _sources(sources: Sequence[Source]) -> Markup:
    if not sources:
        return NOTHING
    told = [_source(each) for each in sources]
    return element("p", "Seen: ", joined(told, ", "), ". Times are in UTC.", class_="note sources")


def _source(source: Source) -> str:
    what = source.what.replace("_", " ")
    if source.error is not None:
        return f"{what} not visible ({source.error})"
    return f"{what} not yet" if source.age_ms is None else f"{what} {duration(source.age_ms)} ago"
