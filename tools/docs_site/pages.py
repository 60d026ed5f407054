"""All pages of the documentation, in the order of the index, and what the names in them lead to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ottla.explain.address import path as protocol_path
from ottla.explain.address import root_from
from ottla.explain.lookup import all_refs
from ottla.explain.page import PageRef
from tools.docs_site import commands, python_api, settings
from tools.docs_site.markdown import Rendered, render

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = "README.md"


class Source(NamedTuple):
    path: str
    """In the repository, below `docs`, where it has a file; else as if it had one: `reference/cli/topics.md`."""
    text: str


class Page(NamedTuple):
    file: str
    rendered: Rendered


class Section(NamedTuple):
    title: str
    pages: list[Page]


def all_sections() -> list[Section]:
    """The index alone, then each kind of page, then the pages that are made of the code, then those of the project."""
    sources = list(_sources())
    files = {source.path: site_file(source.path) for _, several in sources for source in several}
    codes = _codes()
    return [
        Section(title, [_page(source, files, codes) for source in several]) for title, several in sources if several
    ]


def site_file(path: str) -> str:
    """The file of a page on the site."""
    if path == INDEX:
        return "index.html"
    return f"{posixpath.normpath(posixpath.join('x', path)).removeprefix('x/').lower().removesuffix('.md')}.html"


def _sources() -> Iterator[tuple[str, list[Source]]]:
    index = (DOCS / INDEX).read_text(encoding="utf-8")
    yield "", [Source(INDEX, index)]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        listed = re.findall(r"^\| \[.+?\]\((.+?\.md)\)", section, re.MULTILINE)
        title = section.partition("\n")[0]
        yield title, [Source(path, (DOCS / path).read_text(encoding="utf-8")) for path in listed]
    for title, made in (("Commands", commands.pages()), ("Settings", settings.pages()), ("Python", python_api.pages())):
        yield title, [Source(path, text) for path, text in made.items()]
    project = ("CONTRIBUTING.md", "CHANGELOG.md", "GAPS.md")
    yield "Project", [Source(f"../{name}", (ROOT / name).read_text(encoding="utf-8")) for name in project]


def _page(source: Source, files: Mapping[str, str], codes: Mapping[str, str]) -> Page:
    file = files[source.path]
    rendered = render(source.text, _links(source.path, files), lambda code: _code_link(code, file, codes))
    return Page(file, rendered)


def _links(path: str, files: Mapping[str, str]) -> Callable[[str], str | None]:
    root = root_from(files[path])

    def link(target: str) -> str | None:
        if "://" in target or target.startswith("#"):
            return target
        name, mark, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if path.startswith("../"):  # of the repository's own pages
            place = posixpath.relpath(posixpath.normpath(name), "docs")
        if place in files:
            return f"{root}{files[place]}{mark}{anchor}"
        return f"{root}{place}" if not place.startswith("../") and (DOCS / place).is_file() else None

    return link


# --- names in backticks -----------------------------------------------------------------------------------------------


@cache
def _codes() -> Mapping[str, str]:
    """Names of messages, errors, settings and commands -> where on the site they are explained."""
    found = {name: f"{site_file(path)}#{anchor}" for name, (path, anchor) in settings.anchors().items()}
    found |= {name: f"{site_file(path)}#{anchor}" for name, (path, anchor) in commands.anchors().items()}
    for ref in all_refs():
        default = protocol_path(PageRef(ref.kind, ref.name, ref.part))
        found.setdefault(ref.name, default)
        if ref.kind == "api":
            found[f"{ref.name}{str(ref.part).capitalize()}"] = default
    return found


def _code_link(code: str, own: str, codes: Mapping[str, str]) -> str | None:
    """`ottla topics create orders` leads to the command that it begins with."""
    words = code.split()
    names = [code] if words[:1] != ["ottla"] else [" ".join(words[:count]) for count in range(len(words), 1, -1)]
    place = next((codes[name] for name in names if name in codes), None)
    return None if place is None or place.partition("#")[0] == own else f"{root_from(own)}{place}"
