"""HTML from Python, escaped in this one place.

`element("a", "a < b", href="x.html")` gives `<a href="x.html">a &lt; b</a>`. Text of the type `Markup` stays as it is;
every other text is escaped. There are no templates. Only the assets of our packages, and drawings, which escape what is
in them, are made `Markup` by calling its constructor.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

Attribute: TypeAlias = str | int | bool | None
_VOID = frozenset({"br", "hr", "input", "link", "meta", "wbr"})
_SHOWN_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
"""HTML does not allow control characters; the pictures of them are shown instead."""
_SHOWN_DIRECTIONS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
"""These characters would reverse the text around them."""
_SHOWN = _SHOWN_CONTROLS | _SHOWN_DIRECTIONS


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING = Markup("")


def escaped(text: str) -> Markup:
    """Any text as HTML, in content and in attributes."""
    if isinstance(text, Markup):
        return text
    return Markup(escape(text if text.isprintable() else text.translate(_SHOWN)))


def element(tag: str, *content: str | None, **attributes: Attribute) -> Markup:
    """One element. `class_` and `for_` lose the underscore, `data_path` becomes `data-path`.

    An attribute that is None or False is left out; one that is True has no value.
    """
    opening = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in _VOID:
        assert not content, f"<{tag}> has no content"
        return Markup(opening)
    return Markup(f"{opening}{''.join(escaped(part) for part in content if part)}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Markup or text, joined."""
    return Markup(escaped(between).join(escaped(part) for part in parts))
