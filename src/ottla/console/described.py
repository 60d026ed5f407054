"""The topic that a page is about: as the cluster describes it now or, while nobody answers, as it was last seen."""

from __future__ import annotations

from ottla.client import Client, ClientError
from ottla.client.errors import NO_SUCH_TOPIC, ResponseError
from ottla.client.topics import PartitionDescription, TopicDescription, try_describe
from ottla.console.page import Degraded, NotFoundError, PageContext
from ottla.console.page_parts import Part, load_part
from ottla.draw.forms import iso
from ottla.health.facts import Topic
from ottla.health.phrases import plural

__all__ = ["described_topic", "known_topic"]


async def described_topic(context: PageContext) -> Part[TopicDescription]:
    """The topic named in the path. NotFoundError if there is none; else there is always an answer."""
    name = context.names["topic"]

    async def work(client: Client) -> TopicDescription | ResponseError:
        return (await try_describe(client, name))[name]

    asked = await load_part(context, "topic", ("topic", name), work)
    if isinstance(asked.value, TopicDescription):
        return Part(asked.value, asked.sources, asked.degraded)
    error = asked.value
    if error is not None and error.code in NO_SUCH_TOPIC:
        raise _not_found(context, name)
    seen = context.watcher.state.topic(name)
    if seen is None:
        if error is not None:
            raise error
        raise ClientError(asked.why or "the topic has not been observed yet")
    sources = [context.asked("topic", seen.at_ms)]
    return Part(_from_fact(seen.fact), sources, [Degraded("topic", asked.why or str(error))])


def known_topic(asked: Part[TopicDescription]) -> TopicDescription:
    assert asked.value is not None, "described_topic gives a value or raises"
    return asked.value


def _not_found(context: PageContext, name: str) -> NotFoundError:
    state = context.watcher.state
    gone = state.gone.get(("topic", name))
    last = ""
    if gone is not None and isinstance(gone.fact, Topic):
        last = f"It existed until {iso(gone.at_ms)}, with {plural(len(gone.fact.partitions), 'partition')}."
    return NotFoundError("topic", name, state.topics, last)


def _from_fact(topic: Topic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            each.partition, each.leader, -1 if each.epoch is None else each.epoch, each.replicas, each.isr,
            each.elr or (), offline_replicas=each.offline,
        )
        for each in topic.partitions
    )  # fmt: skip
    return TopicDescription(topic.topic, bytes(16), topic.internal, partitions)
