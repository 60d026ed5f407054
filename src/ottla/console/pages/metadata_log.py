"""The metadata log. Brokers do not let clients read it, so that its page says what can be known, and who can read it.

Kafka's controllers serve it to each other and to brokers, by Fetch with CLUSTER_ACTION on the listener for
controllers; no listener for clients has it, whatever one's rights are (4.3.1). Its files can be read where they are.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.client.cluster import METADATA_TOPIC
from ottla.console.html.parts import command, facts, link, node_link, offset, section
from ottla.console.page import Content, Page, PageContext
from ottla.draw.markup import Markup, element, joined
from ottla.health.phrases import word
from ottla.health.quorum import leader_of

SOME_DIRECTORY: Final = "LOG_DIR"


class MetadataLog(msgspec.Struct, frozen=True):
    leader: int | None
    epoch: int | None
    end: int | None
    """The end of the leader's log."""
    hw: int | None
    directories: list[str]
    """The log directories of the leader: the log is in one of them, if no other directory is set for it."""
    commands: list[str]
    """They show its records, where the files are."""


async def load(context: PageContext) -> Content[MetadataLog]:
    seen = context.watcher.state.quorum
    quorum = None if seen is None else seen.fact
    leader = None if quorum is None else leader_of(quorum)
    dirs = [each.fact.path for each in context.watcher.state.log_dirs() if quorum and each.fact.node == quorum.leader]
    data = MetadataLog(
        leader=None if quorum is None or quorum.leader < 0 else quorum.leader,
        epoch=None if quorum is None else quorum.leader_epoch,
        end=None if leader is None else leader.log_end,
        hw=None if quorum is None else quorum.high_watermark,
        directories=sorted(dirs),
        commands=[f"ottla dump {word(f'{each}/{METADATA_TOPIC}-0')}" for each in sorted(dirs) or [SOME_DIRECTORY]],
    )
    return Content(
        data, METADATA_TOPIC, context.sources("quorum", "log_dirs"), context.hidden("quorum"), live=("quorum",)
    )


def render(content: Content[MetadataLog], _: PageContext) -> Markup:
    data = content.data
    why = (
        "The records of the cluster's metadata. Controllers serve them to each other and to brokers; no broker serves "
        "them to clients, whatever their rights are."
    )
    told = facts(
        {
            "leader": node_link(data.leader),
            "epoch": offset(data.epoch),
            "end": offset(data.end),
            "high watermark": offset(data.hw),
        }
    )
    where = (
        "On a machine with a voter or a broker, this reads the files; a running node is not disturbed. "
        "metadata.log.dir may name another directory."
    )
    commands = element("ul", *(element("li", command(each)) for each in data.commands), class_="plain")
    return joined(
        [
            element("p", why, class_="lead"),
            told,
            section("To see its records", element("p", where), commands),
            section("Replicas", element("p", "The ", link("quorum", "quorum"), " shows which nodes keep up with it.")),
        ]
    )  # fmt: skip


PAGES: Final = tuple(
    Page(name, path, MetadataLog, load, render, section="topics")
    for name, path in (
        ("metadata-log", f"/topics/{METADATA_TOPIC}"),
        ("metadata-log-records", f"/topics/{METADATA_TOPIC}/records"),
    )
)
"""Before the pages of all other topics."""
