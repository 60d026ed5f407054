"""The documentation as a site: everything is there, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from importlib import import_module

import click
import pytest

from ottla.cli import GROUP
from ottla.core.metadata.config_defs import broker_defs, group_defs, topic_defs
from ottla.explain import site
from ottla.explain.address import path as protocol_path
from ottla.explain.lookup import all_refs
from ottla.explain.site import SiteFile
from tests.unit.explain.html_reader import attributes
from tools.docs_site import layout, python_api
from tools.docs_site.markdown import anchor_of, render
from tools.docs_site.pages import DOCS, Section, all_sections


@cache
def sections() -> list[Section]:
    return all_sections()


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Every file but those about the protocol, which have a test of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "files", lambda _frame, others: [SiteFile("others", repr(others))])
        return {file.path: file.text for file in layout.files(sections())}


def texts(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if path.endswith(".html")}


def test_every_page_is_there(files: dict[str, str]) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.glob("*/*.md")}
    assert pages | {"index.html", "contributing.html", "changelog.html", "gaps.html"} <= files.keys()


def test_every_link_leads_to_a_page_and_an_anchor(files: dict[str, str]) -> None:
    anchors = {path: set(attributes(text, "id")) for path, text in texts(files).items()}
    others = {protocol_path(ref) for ref in all_refs()} | {layout.PROTOCOL}
    others |= {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()}
    broken = []
    for path, text in texts(files).items():
        for address in {*attributes(text, "href"), *attributes(text, "src")}:
            if "://" in address or re.search(r"assets/[\w.-]+$", address):
                continue
            target, _, anchor = address.partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            if place not in others and not (place in anchors and (not anchor or anchor in anchors[place])):
                broken.append((path, address))
    assert broken == []


def test_anchors_are_unique(files: dict[str, str]) -> None:
    for path, text in texts(files).items():
        ids = attributes(text, "id")
        assert len(ids) == len(set(ids)), path


def test_nothing_is_loaded_from_elsewhere(files: dict[str, str]) -> None:
    for path, text in texts(files).items():
        assert not [address for address in attributes(text, "src") if "//" in address], path
        assert not re.search(r"<link[^>]*//", text), path
    assert not re.search(r"@import|url\(", files[layout.STYLE])


def commands(command: click.Command, path: str) -> set[str]:
    context = click.Context(command)
    if not isinstance(command, click.Group):
        return {path}
    below = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {path}.union(*(commands(each, f"{path} {name}") for name, each in below.items() if each))


def test_every_command_is_told_and_no_other() -> None:
    told = {heading.title for page in _section("Commands") for heading in page.rendered.headings}
    assert told == commands(GROUP, "ottla") - {"ottla"}


@pytest.mark.parametrize(("kind", "table"), [("broker", broker_defs), ("topic", topic_defs), ("group", group_defs)])
def test_every_setting_is_told(kind: str, table: object) -> None:
    assert callable(table)
    [page] = [page for page in _section("Settings") if page.file.endswith(f"/{kind}.html")]
    assert {heading.title for heading in page.rendered.headings[1:]} == set(table())


def test_every_public_name_is_told() -> None:
    for name, page in zip(python_api.MODULES, _section("Python"), strict=True):
        titles = {heading.title for heading in page.rendered.headings}
        assert set(import_module(name).__all__) <= titles


def _section(title: str) -> list:
    [found] = [section for section in sections() if section.title == title]
    return found.pages


def test_the_search_finds_words_of_pages(files: dict[str, str]) -> None:
    [others] = re.findall(r"OtherPage\(path='how-to/share.html', (.+?)OtherPage", files["others"])
    assert " queue " in others


def test_markdown() -> None:
    text = "# A `b` & c\n\nOne *two*\n[three](x.md) and `Fetch`, `other`.\n\n<!-- unseen -->\n```python\n1 < 2\n```\n"
    page = render(text, lambda target: f"to-{target}", {"Fetch": "f.html"}.get)
    assert (page.title, page.about) == ("A b & c", "One two three and Fetch, other.")
    assert '<a href="to-x.md">three</a>' in page.html
    assert '<a href="f.html"><code>Fetch</code></a>, <code>other</code>' in page.html
    assert "unseen" not in page.html
    assert "&lt;" in page.html
    assert page.sections[0].words.startswith(" a b c one two three")
    assert anchor_of("A `b` & c") == "a-b--c"
