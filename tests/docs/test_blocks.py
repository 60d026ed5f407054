"""Every block of the documentation is run, or says why it is not. `python -m tests.docs.count_blocks` counts them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.testing import broker
from tests.docs.blocks import COMMANDS, DATA, PAGES, ROOT, SHOWN, TESTED_BY, Block, blocks, pattern, plain, steps
from tests.docs.sessions import Session, session


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


def follow(found: list[Block], shell: Session) -> None:
    for block in found:
        if block.mark == "after Ctrl-C":
            shell.interrupt()
        if block.mark.startswith("file: "):
            shell.save(block.mark.removeprefix("file: "), block.text)
        elif block.language in COMMANDS:
            run(block, shell)
        elif block.language == "python":
            shell.save("block.py", block.text)
            shell.run(next(steps(block._replace(language="sh", text="python block.py\n"))))
        else:
            check_data(block)


def run(block: Block, shell: Session) -> None:
    for step in steps(block):
        if block.mark == "terminal":
            shell.open_terminal(step)
            continue
        printed = shell.run(step)
        wanted = pattern(step.output)
        assert not step.output or wanted.match(printed), f"{block.place}\n$ {step.command}\n{printed}"


def check_data(block: Block) -> None:
    assert block.language in DATA, f"{block.place}: nobody knows how to run {block.language!r}"
    if block.language == "json":
        json.loads(block.text)
    else:
        NodeConfig(dict(line.split("=", 1) for line in block.text.splitlines() if line))


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
