"""The tables of docs/how-to/topics.md and docs/reference/commands.md are those of the code."""

import re
from pathlib import Path

from ottla.cli import failure
from ottla.client.filters import compile_filter
from ottla.client.filters.language import ROOTS

DOCS = Path(__file__).parents[2] / "docs"
TOPICS = (DOCS / "how-to" / "topics.md").read_text(encoding="utf-8")
COMMANDS = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")


def test_the_exit_codes_are_those_that_there_are():
    codes = {int(code) for code in re.findall(r"^\| (\d)\b", COMMANDS, re.MULTILINE)}
    assert codes == {0, *(value for name, value in vars(failure).items() if name.startswith("EXIT_") and value < 100)}


def test_filters_on_the_page_are_filters():
    for text in re.findall(r"--filter '([^']*)'", TOPICS):
        compile_filter(text)
    assert all(f"`{root}" in TOPICS for root in ROOTS)
