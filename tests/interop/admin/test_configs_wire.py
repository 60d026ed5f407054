"""Settings over the wire: every setting, and every mistake, on Apache Kafka and on ottla with the same settings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.wire.types import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.interop.admin.pair import ClientPair, Pair, is_difference, running_pair
from tests.interop.apache import ApacheKafka

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SETTLED_S = 0.2
"""Apache Kafka's brokers learn of a change a little after it is answered."""
LOOKS = 20

OF_THE_PLACE = {
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.max.idle.interval.ms",  # idle-records
}
SHOWN = ("value", "readOnly", "configSource", "isSensitive", "configType", "synonyms")

Step = tuple[str, Any, int]


@pytest.fixture(scope="module")
def pair(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    yield from running_pair(apache_kafka, tmp_path_factory.mktemp("beside"))


@pytest.fixture(scope="module")
def clients(pair: Pair) -> Iterator[ClientPair]:
    clients = ClientPair(pair)
    kind = CreateTopicsRequest
    clients.ask(kind((kind.CreatableTopic("wired", 1, 1, (), ()),), 10_000), 7)
    time.sleep(SETTLED_S)
    yield clients
    clients.close()


def described(kind: int, name: str, *keys: str, version: int = 4) -> Step:
    request = DescribeConfigsRequest
    resource = request.DescribeConfigsResource(kind, name, keys or None)
    return f"describe {kind} {name!r} {','.join(keys)} v{version}", request((resource,), True), version


def step(kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Step:
    request = IncrementalAlterConfigsRequest
    resource = request.AlterConfigsResource(kind, name, tuple(request.AlterableConfig(*each) for each in changes))
    return f"alter {kind} {name!r} {changes} {validate_only}", request((resource,), validate_only), 1


def replaced(kind: int, name: str, *settings: tuple[str, str | None]) -> Step:
    request = AlterConfigsRequest
    resource = request.AlterConfigsResource(kind, name, tuple(request.AlterableConfig(*each) for each in settings))
    return f"replace {kind} {name!r} {settings}", request((resource,)), 2


def listed(*types: int, version: int = 1) -> Step:
    return f"list {types} v{version}", ListConfigResourcesRequest(types), version


def entries(answer: Any) -> dict[str, dict[str, Any]]:
    (result,) = answer["results"]
    return {each["name"]: each for each in result["configs"]}


# --- every setting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [(TOPIC, "wired", 33), (BROKER, "1", 340), (BROKER, "", 1), (GROUP, "anybody", 17), (CLIENT_METRICS, "any", 3)],
    ids=["topic", "broker", "all brokers", "group", "client metrics"],
)
def test_every_setting_is_described_alike(clients: ClientPair, kind: int, name: str, count: int):
    _, message, version = described(kind, name)
    theirs, ours = map(entries, clients.ask(message, version))
    own = {each for each in ours if each.startswith("ottla.")}
    assert is_difference("own-settings")
    assert ours.keys() - own == theirs.keys()
    assert len(theirs) >= count
    different = {
        (each, field): (theirs[each][field], ours[each][field])
        for each in theirs
        for field in SHOWN
        if each not in OF_THE_PLACE and theirs[each][field] != ours[each][field]
    }
    assert different == {}


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "wired"), (BROKER, "1"), (GROUP, "g"), (CLIENT_METRICS, "m")])
def test_every_setting_has_a_text(clients: ClientPair, kind: int, name: str):
    request = DescribeConfigsRequest
    theirs, ours = map(
        entries, clients.ask(request((request.DescribeConfigsResource(kind, name, None),), False, True), 4)
    )
    assert is_difference("documentation")
    told = {each for each, entry in theirs.items() if entry["documentation"]}
    assert [each for each in told if not ours[each]["documentation"]] == []


def test_loggers_have_their_own_names_and_the_same_form(clients: ClientPair):
    _, message, version = described(LOGGER, "1")
    theirs, ours = map(entries, clients.ask(message, version))
    assert "root" in theirs.keys() & ours.keys()
    assert is_difference("logger-names")
    fields = ("readOnly", "configSource", "isSensitive", "configType", "synonyms", "documentation")
    assert {field: theirs["root"][field] for field in fields} == {field: ours["root"][field] for field in fields}


# --- every change and every mistake -----------------------------------------------------------------------------------

TOPICS = [
    step(TOPIC, "wired", ("retention.ms", SET, "1000"), ("cleanup.policy", APPEND, "compact")),
    described(TOPIC, "wired", "retention.ms", "cleanup.policy"),
    step(TOPIC, "wired", ("cleanup.policy", SUBTRACT, "compact")),
    described(TOPIC, "wired", "cleanup.policy"),
    step(TOPIC, "wired", ("cleanup.policy", APPEND, "burn")),
    step(TOPIC, "wired", ("retention.ms", APPEND, "5")),
    step(TOPIC, "wired", ("retention.ms", SUBTRACT, "5")),
    step(TOPIC, "wired", ("retention.ms", SET, None)),
    step(TOPIC, "wired", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    step(TOPIC, "wired", ("retention.ms", SET, "1"), ("bogus", SET, "2")),
    step(TOPIC, "wired", ("bogus", SET, "1")),
    step(TOPIC, "wired", ("bogus", DELETE, None)),
    step(TOPIC, "wired", ("retention.ms", SET, "soon")),
    step(TOPIC, "wired", ("retention.ms", SET, "-5")),
    step(TOPIC, "wired", ("compression.type", SET, "brotli")),
    step(TOPIC, "wired", ("compression.gzip.level", SET, "10")),
    step(TOPIC, "wired", ("remote.storage.enable", SET, "true")),
    step(TOPIC, "wired", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")),
    step(TOPIC, "wired", ("segment.bytes", SET, "100")),
    step(TOPIC, "wired", ("leader.replication.throttled.replicas", SET, "0:1,1:1")),
    step(TOPIC, "wired", ("leader.replication.throttled.replicas", SET, "zero")),
    step(TOPIC, "wired", ("leader.replication.throttled.replicas", DELETE, None)),
    step(TOPIC, "wired", ("preallocate", SET, " TRUE "), ("min.cleanable.dirty.ratio", SET, ".25")),
    described(TOPIC, "wired", "preallocate", "min.cleanable.dirty.ratio"),
    step(TOPIC, "nowhere", ("retention.ms", SET, "1")),
    step(TOPIC, "b@d", ("retention.ms", SET, "1")),
    step(TOPIC, "", ("retention.ms", SET, "1")),
    step(TOPIC, "wired", ("retention.ms", SET, "99"), validate_only=True),
    described(TOPIC, "wired", "retention.ms"),
    replaced(TOPIC, "wired", ("retention.ms", "77")),
    described(TOPIC, "wired", "retention.ms", "preallocate"),
    replaced(TOPIC, "wired", ("retention.ms", None)),
    replaced(TOPIC, "wired", ("retention.ms", "1"), ("retention.ms", "2")),
    replaced(TOPIC, "wired", ("bogus", "1")),
    replaced(TOPIC, "nowhere", ("retention.ms", "1")),
    replaced(TOPIC, "wired"),
    described(TOPIC, "nowhere"),
    described(TOPIC, "b@d"),
    described(TOPIC, "wired", "retention.ms", "nokey"),
    described(TOPIC, "wired", "retention.ms", version=1),
]
BROKERS = [
    step(BROKER, "", ("log.retention.ms", SET, "6000")),
    step(BROKER, "1", ("log.retention.ms", SET, "5000")),
    described(BROKER, "1", "log.retention.ms", "log.retention.hours"),
    described(TOPIC, "wired", "retention.ms"),
    described(BROKER, ""),
    step(BROKER, "1", ("log.retention.ms", DELETE, None)),
    described(TOPIC, "wired", "retention.ms"),
    step(BROKER, "", ("log.retention.ms", DELETE, None)),
    step(BROKER, "1", ("num.partitions", SET, "3")),
    step(BROKER, "", ("num.partitions", SET, "3")),
    step(BROKER, "2", ("log.retention.ms", SET, "3")),
    step(BROKER, "one", ("log.retention.ms", SET, "3")),
    step(BROKER, "1", ("bogus", SET, "3")),
    step(BROKER, "", ("bogus", SET, "3")),
    described(BROKER, ""),
    described(BROKER, "1", "bogus"),
    step(BROKER, "", ("bogus", DELETE, None)),
    step(BROKER, "1", ("bogus", DELETE, None)),
    step(BROKER, "1", ("log.retention.ms", SET, "x")),
    step(BROKER, "", ("log.retention.ms", SET, "x")),
    step(BROKER, "1", ("min.insync.replicas", SET, "1")),
    step(BROKER, "", ("min.insync.replicas", DELETE, None)),
    step(BROKER, "", ("min.insync.replicas", SET, "2")),
    described(TOPIC, "wired", "min.insync.replicas"),
    step(BROKER, "", ("min.insync.replicas", SET, "1")),
    step(BROKER, "", ("listeners", SET, "PLAINTEXT://127.0.0.1:1")),
    step(BROKER, "1", ("ssl.keystore.password", SET, "x")),
    step(BROKER, "1", ("listener.name.plaintext.ssl.keystore.password", SET, "x")),
    described(BROKER, "1", "listener.name.plaintext.ssl.keystore.password"),
    step(BROKER, "1", ("listener.name.plaintext.ssl.keystore.password", DELETE, None)),
    step(BROKER, "1", ("leader.replication.throttled.rate", SET, "1000")),
    described(BROKER, "1", "leader.replication.throttled.rate"),
    step(BROKER, "1", ("leader.replication.throttled.rate", DELETE, None)),
    step(BROKER, "1", ("leader.replication.throttled.rate", SET, "x")),
    step(BROKER, "1", ("log.cleanup.policy", APPEND, "compact")),
    described(BROKER, "1", "log.cleanup.policy"),
    step(BROKER, "1", ("log.cleanup.policy", SET, "burn")),
    replaced(BROKER, "1", ("message.max.bytes", "2000000")),
    described(BROKER, "1", "message.max.bytes", "log.cleanup.policy"),
    described(TOPIC, "wired", "max.message.bytes", "cleanup.policy"),
    replaced(BROKER, "1"),
    described(BROKER, "2"),
    described(BROKER, "one"),
]
OTHERS = [
    step(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
    described(GROUP, "g"),
    step(GROUP, "g", ("bogus", SET, "1")),
    step(GROUP, "g", ("consumer.session.timeout.ms", SET, "1")),
    step(GROUP, "g", ("consumer.session.timeout.ms", SET, "99999999")),
    step(GROUP, "g", ("consumer.session.timeout.ms", SET, "x")),
    step(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
    step(GROUP, "g", ("share.isolation.level", SET, "zz")),
    step(GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H")),
    step(GROUP, "g", ("share.auto.offset.reset", SET, "none")),
    step(GROUP, "g", ("share.record.lock.duration.ms", SET, "60001")),
    step(GROUP, "g", ("streams.num.standby.replicas", SET, "3")),
    described(GROUP, ""),
    listed(GROUP),
    step(GROUP, "g", ("consumer.session.timeout.ms", DELETE, None), ("share.auto.offset.reset", DELETE, None)),
    step(CLIENT_METRICS, "m", ("interval.ms", SET, "99")),
    step(CLIENT_METRICS, "m", ("interval.ms", SET, "1000"), ("metrics", SET, "a,b")),
    step(CLIENT_METRICS, "m", ("bogus", SET, "1")),
    step(CLIENT_METRICS, "", ("interval.ms", SET, "1000")),
    step(CLIENT_METRICS, "m", ("match", SET, "who=bar")),
    step(CLIENT_METRICS, "m", ("match", SET, "client_id=(")),
    step(CLIENT_METRICS, "m", ("match", SET, "client_id=ab*")),
    described(CLIENT_METRICS, "m"),
    described(CLIENT_METRICS, ""),
    listed(CLIENT_METRICS),
    listed(version=0),
    listed(CLIENT_METRICS, GROUP),
    listed(BROKER, LOGGER),
    listed(TOPIC, 99),
    step(CLIENT_METRICS, "m", *((key, DELETE, None) for key in ("interval.ms", "match", "metrics"))),
    listed(CLIENT_METRICS),
    step(3, "m", ("interval.ms", SET, "1000")),
    described(0, "m"),
]
LOGGERS = [
    step(LOGGER, "1", ("root", SET, "DEBUG")),
    described(LOGGER, "1", "root"),
    step(LOGGER, "1", ("root", SET, "INFO"), validate_only=True),
    step(LOGGER, "1", ("root", SET, "ERROR")),
    described(LOGGER, "1", "root"),
    step(LOGGER, "1", ("root", SET, "LOUD")),
    step(LOGGER, "1", ("root", SET, "info")),
    step(LOGGER, "1", ("root", DELETE, None)),
    step(LOGGER, "1", ("root", APPEND, "INFO")),
    step(LOGGER, "1", ("root", SET, None)),
    step(LOGGER, "1", ("root", SET, "INFO"), ("root", SET, "WARN")),
    step(LOGGER, "1", ("no.such.logger", SET, "INFO")),
    step(LOGGER, "1", ("no.such.logger", DELETE, None)),
    step(LOGGER, "2", ("root", SET, "INFO")),
    step(LOGGER, "one", ("root", SET, "INFO")),
    described(LOGGER, "2"),
    described(LOGGER, "one"),
    described(LOGGER, ""),
    replaced(LOGGER, "1", ("root", "INFO")),
    step(LOGGER, "1", ("root", SET, "INFO")),
]


@pytest.mark.parametrize("script", [TOPICS, BROKERS, OTHERS, LOGGERS], ids=["topics", "brokers", "others", "loggers"])
def test_the_same_steps_have_the_same_outcomes(clients: ClientPair, script: list[Step]):
    different = {}
    for name, message, version in script:
        is_described = isinstance(message, DescribeConfigsRequest)
        for _ in range(LOOKS if is_described else 1):  # on a busy machine it takes longer to settle
            theirs, ours = map(plain, clients.ask(message, version))
            if theirs == ours and is_described:
                break
            time.sleep(SETTLED_S)
        if theirs != ours:
            different[name[:150]] = (theirs, ours)
    assert different == {}


def plain(answer: Any) -> Any:
    """An answer without what is each broker's own: words for people, and the order of entries."""
    if isinstance(answer, dict):
        own = ("errorMessage", "throttleTimeMs", "documentation")
        return {key: plain(value) for key, value in answer.items() if key not in own}
    if isinstance(answer, list):
        found = [plain(each) for each in answer]
        is_ordered = bool(found) and isinstance(found[0], dict) and "source" in found[0]
        return found if is_ordered else sorted(found, key=str)
    return answer


# --- where they differ on purpose -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "case", "code"),
    [
        ("unknown-operation", step(TOPIC, "wired", ("retention.ms", 9, "1")), 42),
        ("thread-counts", step(BROKER, "1", ("num.io.threads", SET, "100")), 0),
    ],
)
def test_what_differs_on_purpose(clients: ClientPair, difference: str, case: Step, code: int):
    assert is_difference(difference)
    theirs, ours = clients.ask(*case[1:])
    assert theirs["responses"][0]["errorCode"] != code
    assert ours["responses"][0]["errorCode"] == code
    if code == 0:
        clients.ask(*step(BROKER, "1", ("num.io.threads", DELETE, None))[1:])


def test_both_messages_of_a_refusal_are_for_people(clients: ClientPair):
    theirs, ours = clients.ask(*step(TOPIC, "wired", ("retention.ms", SET, "soon"))[1:])
    assert is_difference("error-texts")
    for answer in (theirs, ours):
        assert "retention.ms" in answer["responses"][0]["errorMessage"]
