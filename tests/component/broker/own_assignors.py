"""Assignors of one's own that do what their names say. They are loaded by a broker, and by its child process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.assignors import Member, Topic


class Reverse:
    """The last partition goes to the first member."""

    name = "reverse"

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        targets: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
        print("what is printed does no harm")  # noqa: T201
        for topic in topics.values():
            subscribers = [member.member_id for member in members if topic.name in member.topics]
            for partition in range(topic.partition_count):
                owner = subscribers[(topic.partition_count - 1 - partition) % len(subscribers)]
                targets[owner].setdefault(topic.name, []).append(partition)
        return targets


class Raising(Reverse):
    name = "raising"

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        raise ValueError("no luck today")


class Twice(Reverse):
    name = "twice"

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        return {member.member_id: {name: [0] for name in member.topics} for member in members}


class Hanging(Reverse):
    name = "hanging"

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        time.sleep(600)


class Ending(Reverse):
    name = "ending"

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        sys.stdout.flush()
        os._exit(7)


class Uniform(Reverse):
    """Has a name that is taken."""

    name = "uniform"


# --- for tests of child processes -------------------------------------------------------------------------------------


def echo(request: Sequence[bytes]) -> list[bytes]:
    """Does what the first part says, and gives the others back."""
    what, *rest = request
    if what == b"sleep":
        time.sleep(600)
    if what == b"exit":
        os._exit(3)
    if what == b"raise":
        raise ValueError("bad part")
    if what == b"pid":
        return [str(os.getpid()).encode()]
    return rest
