"""Settings as pages, from what `ottla explain config` knows of them."""

from __future__ import annotations

import contextlib
import io
import json
from functools import cache
from typing import Any

from ottla.cli import run
from tools.docs_site.markdown import anchor_of, plain

_INTROS = {
    "broker": "Settings of a node: in `server.properties`, with `--set`, or, where it says so, while the node runs.",
    "topic": "Settings of one topic. What is not set is taken from the broker's setting beside it.",
    "group": "Settings of one group. What is not set is taken from the broker's setting beside it.",
    "client-metrics": "Settings of subscriptions to metrics that clients push.",
}
_CHANGED = {"cluster-wide": "while it runs", "per-broker": "while it runs, one broker", "read-only": "at a start"}


@cache
def pages() -> dict[str, str]:
    """Path of a page -> its Markdown."""
    return {_path(kind): _page(kind, intro) for kind, intro in _INTROS.items()}


@cache
def anchors() -> dict[str, tuple[str, str]]:
    """A setting -> its page and anchor; the broker's where several have the name."""
    return {each["name"]: (_path(each["of"]), anchor_of(each["name"])) for each in reversed(_every())}


def _path(kind: str) -> str:
    return f"reference/settings/{kind}.md"


@cache
def _every() -> list[dict[str, Any]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(["explain", "config", "--list", "--json"])
    rows: list[dict[str, Any]] = json.loads(printed.getvalue())["rows"]
    order = list(_INTROS)
    return sorted(rows, key=lambda each: (order.index(each["of"]), each["name"]))


def _page(kind: str, intro: str) -> str:
    parts = [f"# Settings: {kind.replace('-', ' ')}", intro]
    parts += ["A setting marked *not supported* is accepted, and ottla does not act on it."] if kind == "broker" else []
    for each in (each for each in _every() if each["of"] == kind):
        facts = [each["type"], f"default `{each['default']}`" if each["default"] not in (None, "") else "no default"]
        facts += [f"allowed: {plain(each['allowed'])}"] if each["allowed"] else []
        facts += [f"changed {_CHANGED.get(each['changed'], each['changed'])}"]
        facts += ["else the " + ", ".join(f"{whose} `{name}`" for whose, name in map(str.split, each["also"]))] * bool(
            each["also"] and kind != "broker"
        )
        facts += ["*not supported*"] if each["supported"] is False else []
        parts += [f"## {each['name']}", plain(each["doc"]), " · ".join(facts)]
    return "\n\n".join(parts)
