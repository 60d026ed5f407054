"""The site: everything is there, everything can be reached and found, and nothing comes from elsewhere."""

from __future__ import annotations

import json
import posixpath
import re
from functools import cache
from typing import Any

import pytest

from ottla.explain import address, all_refs, api_groups, site
from ottla.explain.kips import kips_of
from ottla.explain.page import PageRef
from ottla.explain.search_index import VARIABLE
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names
from ottla.wire.index import MESSAGES
from tests.unit.explain.html_reader import Tag, attributes, read
from tests.unit.explain.page_list import message_pages


@cache
def files() -> dict[str, str]:
    """The whole site, made once for all tests."""
    return {file.path: file.text for file in site.files()}


@cache
def ids() -> dict[str, list[str]]:
    """The anchors of each document."""
    return {path: attributes(text, "id") for path, text in files().items() if path.endswith(".html")}


@cache
def index() -> Tag:
    return read(files()["index.html"])


@cache
def search_index() -> dict[str, Any]:
    """The data inside the script, without running it."""
    text = files()[site.INDEX_SCRIPT]
    assert text.startswith(f"window.{VARIABLE} = {{")
    parts = re.findall(r"^ (\w+): (\[\n.*?\n\]),$", text, re.DOTALL | re.MULTILINE)
    return {name: json.loads(inner) for name, inner in parts}


def test_every_page_has_a_file_of_its_own():
    wanted = {address.path(ref) for ref in all_refs()}
    assert len(wanted) == sum(1 for _ in all_refs())
    assert wanted | {"index.html"} == set(ids())
    assert site.file_count() == len(files())


def test_every_link_leads_somewhere():
    anchors = {path: set(found) for path, found in ids().items()}
    seen = 0
    for path in ids():
        for target in set(attributes(files()[path], "href", "src")):
            file, _, anchor = target.partition("#")
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            assert found in files(), f"{path} leads to {target}"
            assert not anchor or anchor in anchors[found], f"{path} leads to {target}"
            seen += 1
    assert seen > 20_000


def test_nothing_comes_from_elsewhere():
    for path, text in files().items():
        assert not re.search(r"""(?:href|src)=["']?(?:[a-z]+:|//)|url\(|@import|fetch\(|XMLHttpRequest""", text), path


def test_ids_are_unique_in_each_document():
    for path, found in ids().items():
        assert len(found) == len(set(found)), path


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (PageRef("api", "ShareFetch"), "api/ShareFetch/request-v2.html"),
        (PageRef("api", "ShareFetch", "response", 1), "api/ShareFetch/response-v1.html"),
        (PageRef("record", "StreamsGroupMetadataValue"), "record/StreamsGroupMetadataValue/v0.html"),
        (PageRef("header", "RequestHeader", None, 1), "header/RequestHeader/v1.html"),
        (PageRef("error", "NONE"), "error/NONE.html"),
    ],
)
def test_addresses(ref: PageRef, path: str):
    assert address.path(ref) == path


def test_the_root_is_found_from_any_depth():
    assert [address.root_from(path) for path in ("index.html", "error/X.html", "api/X/y.html")] == ["", "../", "../../"]


# --- the list ---------------------------------------------------------------------------------------------------------


def test_every_api_is_in_one_group():
    listed = [api for apis in api_groups.GROUPS.values() for api in apis.split()]
    assert sorted(listed) == sorted(api_names().values())


def test_the_list_names_everything():
    linked = set(index().values("href"))
    for ref in all_refs():
        if ref == address.exact(PageRef(ref.kind, ref.name, ref.part)):
            assert address.path(ref) in linked, ref


def test_apis_are_listed_by_key_and_can_be_filtered():
    rows = index().find(lambda tag: tag.name == "tr" and "data-group" in tag.attributes)
    keys = [int(row.with_class("code")[0].text) for row in rows]
    assert keys == sorted(api_names())
    found = {row.named("a")[0].text: (row.attributes["data-find"] or "").split() for row in rows}
    assert {"78", "sharefetch", "kip-932", "kip-1206", "share"} <= set(found["ShareFetch"])


def test_kips_come_from_both_halves():
    assert "KIP-932" in kips_of("ShareFetchRequest", "ShareFetchResponse")
    numbers = [int(kip[4:]) for kip in kips_of("FetchRequest", "FetchResponse")]
    assert numbers == sorted(set(numbers))


# --- the search -------------------------------------------------------------------------------------------------------


def test_every_message_can_be_found():
    assert {entry[0] for entry in search_index()["messages"]} == set(MESSAGES)
    for name, key, stem, version, summary, _, _ in search_index()["messages"]:
        assert f"{stem}{version}.html" in files()
        assert key == MESSAGES[name].key
        assert summary


def test_every_field_of_every_version_can_be_found():
    found = {
        entry[0]: {field: f"{entry[2]}{version}.html" for version, *fields in entry[6] for field in fields}
        for entry in search_index()["messages"]
    }
    for page in message_pages():
        for row in page.schema:
            field = row.path.partition(".")[2].replace("[]", "")
            file = found[page.message][field]
            assert file in files(), (page.title, field)
    for fields in found.values():
        for field, file in fields.items():
            assert f'id="f-{field}"' in files()[file], (file, field)


def test_a_field_leads_to_the_default_version_if_that_has_it():
    entry = next(entry for entry in search_index()["messages"] if entry[0] == "FetchRequest")
    default, *fields = entry[6][0]
    assert default == entry[3]
    assert "Topics.TopicId" in fields
    older = {field: version for version, *fields in entry[6][1:] for field in fields}
    assert older["Topics.Topic"] == 12


def test_every_error_can_be_found():
    errors = search_index()["errors"]
    assert {(code, name) for code, name, _, _ in errors} == {(error.value, error.name) for error in ErrorCode}
    assert all(meaning for _, _, _, meaning in errors)


def test_pages_share_their_styles_and_the_site_stays_small():
    assert sum(len(text) for text in files().values()) < 30_000_000
    assert len(files()[site.INDEX_SCRIPT]) < 250_000
    assert all("<style" not in text for path, text in files().items() if path.endswith(".html"))
