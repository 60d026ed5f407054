"""Names for members: their client ids, where the timeline has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow.compute as pc

from ottla.spark.report.material import Material

__all__ = ["clients_of", "process_name", "told_apart"]

_CONSUMER: Final = re.compile(r"(?<=-StreamThread-)(\d+)-consumer$")
_THREAD: Final = re.compile(r"-StreamThread-\d+$")


def clients_of(material: Material, members: Iterable[str | None]) -> dict[str, str]:
    """Member id -> client id. The consumer of a Kafka Streams thread has the thread's name."""
    wanted = sorted({each for each in members if each})
    joined = material.rows("group_timeline").where(pc.field("event") == "member_joined")
    if not wanted or "member" not in joined.columns:
        return {}
    rows = joined.where(pc.field("member").isin(wanted)).each(("member", "new"))
    return {row["member"]: _CONSUMER.sub(r"\1", row["new"]) for row in rows if row["new"]}


def told_apart(member: str, clients: dict[str, str], among: Iterable[str]) -> str:
    """A member's client id, with its member id if others have the same client id."""
    client = clients.get(member)
    if client is None:
        return member
    return client if sum(clients.get(each) == client for each in among) == 1 else f"{client} {member}"


def process_name(client: str) -> str:
    """The common prefix of the client ids of all threads of a process."""
    return _THREAD.sub("", client)
