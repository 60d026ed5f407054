"""Parts of pages: columns that are left out, commands that break between words, and the way to a page."""

from __future__ import annotations

from ottla.console.html.parts import Column, command, table
from ottla.console.trail import pages_above
from ottla.draw.markup import NOTHING

COLUMNS = (Column("member"), Column("rack", is_optional=True), Column("state", is_short=True), Column("epoch", True))


def test_an_optional_column_without_a_value_is_left_out():
    assert "rack" not in table("Members", COLUMNS, [("a", None, "stable", 1), ("b", NOTHING, "stable", 2)])
    with_one = table("Members", COLUMNS, [("a", None, "stable", 1), ("b", "r1", "stable", 2)])
    assert with_one.count('data-label="rack"') == 2
    assert '<td data-label="state" class="short">stable</td>' in with_one


def test_a_table_with_few_columns_is_narrow():
    assert 'class="cards narrow"' in table("Members", COLUMNS, [("a", None, "stable", 1)])
    assert 'class="cards"' in table("Members", COLUMNS, [("a", "r1", "stable", 1)])


def test_details_are_shown_on_demand_on_narrow_screens():
    columns = (*COLUMNS, Column("host", is_detail=True), Column("age", is_number=True, is_detail=True))
    shown = table("Members", columns, [("a", "r1", "stable", 1, "h", 2)])
    assert '<details class="fields"><summary>All fields</summary></details><table' in shown
    assert '<td data-label="host" class="detail">h</td><td data-label="age" class="num detail">2</td>' in shown
    assert "<details" not in table("Members", COLUMNS, [("a", "r1", "stable", 1)])


def test_a_command_is_copied_whole_and_breaks_between_words():
    shown = command("ottla topics describe <x> --bootstrap a:1,b:2")
    assert 'data-copy="ottla topics describe &lt;x&gt; --bootstrap a:1,b:2"' in shown
    assert "<span>&lt;x&gt;</span> <span>--bootstrap</span> <span>a:1,<wbr>b:2</span>" in shown


def test_the_pages_above_a_page_are_those_its_path_begins_with():
    names = {"topic": "a.json", "partition": "0", "offset": "5"}
    assert list(pages_above("/topics/{topic}/records/{partition}/{offset}", names)) == [
        ("Topics", "/topics"),
        ("a.json", "/topics/a~2Ejson"),
        ("Records", "/topics/a~2Ejson/records"),
    ]
    assert list(pages_above("/groups/{group}/window/{topic}/{partition}", {"group": "x/y", **names})) == [
        ("Groups", "/groups"),
        ("x/y", "/groups/x~2Fy"),
    ]
    assert list(pages_above("/topics", {})) == []
