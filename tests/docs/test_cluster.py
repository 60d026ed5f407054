"""docs/how-to/cluster.md: every command is on the page, and every option of `up`."""

import re
from pathlib import Path

from ottla.cli.local_cluster import cluster
from ottla.cli.local_cluster.up import up

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8")


def test_every_command_is_on_the_page():
    assert [name for name in cluster.commands if f"ottla cluster {name}" not in PAGE] == []


def test_every_option_of_up_is_on_the_page():
    own = [each.opts[0] for each in up.params if each.opts[0] not in ("-q", "-v")]  # which every command has
    assert [option for option in own if not re.search(rf"`{option}[ `]", PAGE)] == []
