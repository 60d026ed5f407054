"""HTML as a tree, for tests: strict about what is closed, and quick to ask.

`read` takes a second for a megabyte. `tags` only lists the tags, which is quick enough for a whole site; it can rely on
`<` and `>` being escaped everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"wbr", "br", "hr", "img", "input", "link", "meta"})
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:=\"[^\"<>]*\")?)*)>|<!doctype html>|([<>])")


@dataclass
class Tag:
    name: str
    attributes: dict[str, str | None]
    children: list[Tag | str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def walk(self) -> Iterator[Tag]:
        yield self
        for child in self.children:
            if isinstance(child, Tag):
                yield from child.walk()

    def find(self, holds: Callable[[Tag], object]) -> list[Tag]:
        return [tag for tag in self.walk() if holds(tag)]

    def named(self, name: str) -> list[Tag]:
        return self.find(lambda tag: tag.name == name)

    def with_class(self, name: str) -> list[Tag]:
        return self.find(lambda tag: name in tag.classes)

    def values(self, attribute: str) -> list[str]:
        found = (tag.attributes.get(attribute) for tag in self.walk())
        return [value for value in found if value is not None]

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Tag("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"<{tag}> has an attribute twice: {attrs}"
        found = Tag(tag, dict(attrs))
        self.open[-1].children.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag: str) -> None:
        opened = self.open.pop().name
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(text: str) -> Tag:
    """The document; AssertionError for tags that are not closed in order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"never closed: {[tag.name for tag in reader.open[1:]]}"
    return reader.open[0]


def tags(text: str) -> Iterator[tuple[str, str]]:
    """Name and attributes of each tag; AssertionError for a stray < or >, and for tags that are not closed in order."""
    opened: list[str] = []
    for match in _TAG.finditer(text):
        closing, name, attributes, stray = match.groups()
        assert not stray, f"stray {stray} at {text[max(match.start() - 40, 0) : match.end() + 40]!r}"
        if closing:
            last = opened.pop()
            assert last == name, f"</{name}> closes <{last}>"
        elif name:
            yield name, attributes
            if name not in VOID:
                opened.append(name)
    assert not opened, f"never closed: {opened}"


def attributes(text: str, *names: str) -> list[str]:
    """The values of these attributes in a whole document; they must hold nothing that is escaped."""
    found = []
    for _, inner in tags(text):
        for name in names:
            found += re.findall(rf' {name}="([^"]*)"', inner)
    return found
