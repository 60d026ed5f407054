"""Probes of nodes, the quorum of controllers, configs and log directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client import ClientError
from ottla.client.address import Address, Peer
from ottla.client.cluster import BrokerDescription, ClusterDescription, describe, describe_quorum
from ottla.client.cluster import Replica as DescribedReplica
from ottla.client.configs import Entries, Resource, ResourceType, try_describe
from ottla.client.errors import AuthenticationError, ConnectError, ResponseError, error_name
from ottla.client.log_dirs import LogDirectory, try_describe_log_dirs
from ottla.health.facts import Broker, Cluster, Configs, LogDir, Quorum, Replica
from ottla.observe.coverage import apis_of_all
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, probe_error, probe_result
from ottla.observe.probes.partial_results import by_node, split_errors
from ottla.wire import uuid_text
from ottla.wire.frames import api_names
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["probe_cluster", "probe_configs", "probe_log_dirs", "probe_quorum"]

NODE_TIMEOUT_MS: Final = 3_000
"""A node that takes longer to answer ApiVersions counts as unreachable."""
RESOURCES_AT_A_TIME: Final = 200

GROUP_KEYS: Final = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
)
TOPIC_KEYS: Final = ("min.insync.replicas",)
BROKER_KEYS: Final = (
    *(f"group.{key}" for key in GROUP_KEYS),
    *TOPIC_KEYS,
    "transaction.max.timeout.ms",
    "listeners",
    "listener.security.protocol.map",
    "ssl.client.auth",
    "group.streams.topology.description.plugin.class",
)


class NodeVersions(NamedTuple):
    """The APIs and features of a node, or why it did not answer."""

    apis: Mapping[str, int]
    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int] | None
    error: str | None = None


async def probe_cluster(ctx: ProbeContext) -> list[ProbeResult]:
    found = await describe(ctx.client, include_fenced=True)
    versions = await ctx.client.together(_ask_versions(ctx, each) for each in found.brokers)
    answering = [each for each in versions if each.error is None]
    if answering:
        ctx.memory.apis = apis_of_all(each.apis for each in answering)
    finalized = next((each.finalized for each in answering if each.finalized is not None), None)
    ctx.memory.features = finalized or {}
    return [probe_result("", _cluster(found, versions, finalized))]


async def _ask_versions(ctx: ProbeContext, broker: BrokerDescription) -> NodeVersions:
    peer = Peer(Address(broker.host, broker.port), broker.node_id)
    try:
        answer = await ctx.client.ask_at(peer, ApiVersionsRequest("ottla", "0"), timeout_ms=NODE_TIMEOUT_MS)
    except ClientError as error:
        return NodeVersions({}, {}, None, _why(error))
    body = answer.of(ApiVersionsResponse)
    if body.error_code:
        return NodeVersions({}, {}, None, error_name(body.error_code))
    names = api_names()
    return NodeVersions(
        {names[each.api_key]: each.max_version for each in body.api_keys if each.api_key in names},
        {each.name: (each.min_version, each.max_version) for each in body.supported_features},
        {each.name: each.max_version_level for each in body.finalized_features},
    )


def _why(error: ClientError) -> str:
    return error.reason if isinstance(error, ConnectError | AuthenticationError) else str(error)


def _cluster(found: ClusterDescription, versions: list[NodeVersions], finalized: Mapping[str, int] | None) -> Cluster:
    brokers = tuple(
        Broker(
            id=each.node_id,
            host=each.host,
            port=each.port,
            rack=each.rack,
            fenced=each.is_fenced,
            reachable=said.error is None,
            error=said.error,
            supported=dict(said.supported) or None,
        )
        for each, said in zip(found.brokers, versions, strict=True)
    )
    return Cluster(
        controller=found.controller_id, brokers=brokers, finalized=None if finalized is None else dict(finalized)
    )


# --- quorum -----------------------------------------------------------------------------------------------------------


async def probe_quorum(ctx: ProbeContext) -> list[ProbeResult]:
    found = await describe_quorum(ctx.client)
    fact = Quorum(
        leader=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=None if found.high_watermark < 0 else found.high_watermark,
        replicas=(*_replicas(found.voters, "voter"), *_replicas(found.observers, "observer")),
    )
    return [probe_result("", fact)]


def _replicas(replicas: Iterable[DescribedReplica], role: str) -> Iterator[Replica]:
    for each in replicas:
        yield Replica(
            id=each.node_id,
            role=role,
            dir=None if each.directory_id is None else uuid_text(each.directory_id),
            log_end=None if each.log_end_offset < 0 else each.log_end_offset,
            last_fetch_ts=each.last_fetch_ms,
            last_caught_up_ts=each.last_caught_up_ms,
        )


# --- settings ---------------------------------------------------------------------------------------------------------


async def probe_configs(ctx: ProbeContext) -> list[ProbeResult]:
    results = await _configs(ctx, ResourceType.BROKER, map(str, sorted(ctx.client.metadata.brokers)), BROKER_KEYS)
    results += await _configs(ctx, ResourceType.TOPIC, ctx.memory.topics, TOPIC_KEYS)
    groups = [each.group_id for each in ctx.memory.groups if each.type != "classic"]
    return results + await _configs(ctx, ResourceType.GROUP, groups, GROUP_KEYS)


async def _configs(
    ctx: ProbeContext, kind: ResourceType, names: Iterable[str], keys: tuple[str, ...]
) -> list[ProbeResult]:
    resources = [Resource(kind, name) for name in names]
    results = []
    for begin in range(0, len(resources), RESOURCES_AT_A_TIME):
        some = resources[begin : begin + RESOURCES_AT_A_TIME]
        outcomes = await try_describe(ctx.client, *some, keys=keys)
        results += [_settings(ctx, resource, outcome) for resource, outcome in outcomes.items()]
    return results


def _settings(ctx: ProbeContext, resource: Resource, outcome: Entries | ResponseError) -> ProbeResult:
    kind = resource.type.name.lower()
    entity = f"{kind}:{resource.name}"
    if isinstance(outcome, ResponseError):
        return probe_error("configs", entity, ctx.error_of(outcome))
    values = {name: entry.value for name, entry in sorted(outcome.items())}
    return probe_result(entity, Configs(resource=kind, name=resource.name, values=values))


# --- disks ------------------------------------------------------------------------------------------------------------


async def probe_log_dirs(ctx: ProbeContext) -> list[ProbeResult]:
    outcomes = await try_describe_log_dirs(ctx.client)
    told, refused = split_errors(ctx, "log_dirs", by_node(outcomes))
    return [*refused, *(_disk(node_id, each) for node_id in outcomes for each in told.get(f"node:{node_id}", ()))]


def _disk(node_id: int, each: LogDirectory) -> ProbeResult:
    fact = LogDir(
        node=node_id,
        path=each.path,
        error=None if each.error is None else error_name(each.error.code),
        total=each.total_bytes,
        usable=each.usable_bytes,
        size=each.size_bytes,
    )
    return probe_result(f"{node_id}:{each.path}", fact)
