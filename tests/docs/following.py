"""Follows a page: saves its files, runs its commands, and compares what they print."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ottla.broker.config.node_config import NodeConfig
from tests.docs.blocks import COMMANDS, DATA, Block, pattern, steps
from tests.docs.sessions import Session


def follow(found: Iterable[Block], shell: Session) -> None:
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
