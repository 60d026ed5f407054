"""Observes any cluster: takes samples of its groups, offsets, nodes and quorum on intervals, for rules and jobs.

    async with Client("localhost:9092", **QUIET) as client:
        await Observer(client, "my-run", Options(), sink=TopicSink(client, "ottla.observations")).run()

`probes` asks the cluster, one function for each kind of sample. `schedule` decides which probe is due, `changes` which
results become samples, and `outbox` holds samples until they are written; none of them does input or output. `observer`
puts them together. `sinks` and `files` write samples, `files` and `topics` read them back. A sample is a
`ottla.health.samples.Sample`.
"""

from typing import Final

from ottla.client.settings import Changes
from ottla.observe.files import FileSink, read_files
from ottla.observe.observer import Observer, Options
from ottla.observe.sinks import NullSink, Sink, TopicSink, prepare_topic
from ottla.observe.topics import read_topic

__all__ = [
    "QUIET",
    "FileSink",
    "NullSink",
    "Observer",
    "Options",
    "Sink",
    "TopicSink",
    "prepare_topic",
    "read_files",
    "read_topic",
]

QUIET: Final[Changes] = {
    "client_id": "ottla-observe",
    "default_api_timeout_ms": 10_000,
    "request_timeout_ms": 10_000,
    "connect_timeout_ms": 3_000,
    "metadata_max_age_ms": 30_000,
    "unknown_topic_wait_ms": 1,
    "reconnect_backoff_ms": 1_000,
    "reconnect_backoff_max_ms": 60_000,
    "max_in_flight": 20,
}
"""Settings for a client that polls: it fails fast, and backs off from brokers that do not answer."""
