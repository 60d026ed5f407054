"""Every block of the documentation is run, or says why it is not. `python -m tests.docs.count_blocks` counts them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.testing import broker
from tests.docs.blocks import PAGES, ROOT, SHOWN, TESTED_BY, Block, blocks, pattern, plain
from tests.docs.following import follow
from tests.docs.sessions import session


def own(page: Path) -> list[Block]:
    """The blocks that are run here."""
    found = [each for each in blocks(page) if not each.is_left_out and (each.mark or each.language not in SHOWN)]
    return [each for each in found if each.mark or (each.page, each.language) not in TESTED_BY]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if own(page)], ids=name)
def test_the_page_holds(page: Path, tmp_path: Path) -> None:
    found = own(page)
    with ExitStack() as stack:
        has_own = any(block.mark == "terminal" for block in found)
        port = None if has_own else stack.enter_context(broker(num_partitions=1)).port
        follow(found, stack.enter_context(session(tmp_path / "reader", port)))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_are_marked_as_what_they_are(page: Path) -> None:
    for block in blocks(page):
        assert not (block.language in SHOWN and block.text.startswith("$ ")), f"{block.place}: this is a console block"
        assert block.language != "console" or block.text.startswith("$ "), f"{block.place}: where is the command?"
        known = ("not run: ", "file: ", "terminal", "after Ctrl-C")
        assert not block.mark or block.mark.startswith(known), f"{block.place}: what is {block.mark!r}?"


def test_tests_that_run_blocks_in_their_own_way_exist() -> None:
    pages = {block.page: {each.language for each in blocks(page)} for page in PAGES for block in blocks(page)}
    for (page, language), test in TESTED_BY.items():
        assert language in pages[page], page
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8") or "worked_examples" in test, test


def test_patterns() -> None:
    wanted = pattern(["NAME    SIZE", "…", "orders  … KiB"])
    assert wanted.match(plain("NAME SIZE\nother 3\norders   4.0 KiB\n"))
    assert not wanted.match(plain("NAME SIZE\norders 4 KiB\nmore\n"))
    assert not wanted.match(plain("orders 4 KiB\n"))


def test_how_long_something_takes_depends_on_the_machine():
    assert plain("  … 10 s\n✓ read  22 records\n  … 23 s\n… and 3 s more\n") == "✓ read 22 records\n… and 3 s more\n"
