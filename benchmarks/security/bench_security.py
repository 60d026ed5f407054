"""Logins and TLS of ottla and Apache Kafka 4.3.1, one after the other in each round, with the same clients.

    python -m benchmarks security [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

Both brokers run with the same settings: a listener for each security protocol, RSA-free certificates (P-256), SCRAM
with 4096 iterations. A login is one connection: opened, negotiated, logged in and closed by ottla's own client, one at
a time. Produce and fetch are librdkafka's, with TLS 1.3, beside the same load without TLS. Rules are those of
StandardAuthorizer, for many users and topics; the measured client needs two of them, and is no super user. Floods of
guesses and of half-open TLS handshakes come from other addresses and listeners than the client that is measured.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker import loads, raw
from benchmarks.broker.brokers import resident_bytes, under_load
from benchmarks.hostile.beside import hold_elsewhere, run_elsewhere, watched
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from ottla.client import acls, topics
from ottla.client.acls import Operation
from ottla.client.blocking import BlockingClient
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import LATEST, list_offsets
from ottla.client.properties import settings_of
from tests.hostile import login_attacks
from tests.hostile.neighbour import neighbour
from tests.interop.credentials import PASSWORD, USER
from tests.interop.security.guarded import MECHANISMS, Guarded, guarded_node

PACKAGES = ("confluent-kafka", "cryptography", "msgspec")
MEGABYTE = 1 << 20
VALUE_BYTES = 1024
BATCH_BYTES = 128 * 1024


class Scale(NamedTuple):
    logins: int
    load_bytes: int
    rules: tuple[int, int]
    requests: int
    guesses: int
    half_open: int
    seconds: float


SCALES = {
    Size.FULL: Scale(300, 200 * MEGABYTE, (10_000, 100_000), 5_000, 10_000, 1_000, 10.0),
    Size.QUICK: Scale(50, 40 * MEGABYTE, (1_000, 10_000), 1_000, 1_000, 200, 2.0),
    Size.SMOKE: Scale(2, MEGABYTE // 4, (20, 40), 5, 60, 5, 0.2),
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RULES_AT_ONCE = 500


class GuardedBroker:
    """A broker with listeners of all kinds; `port` is the one without security."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.port = self.pid = 0
        self._directory = directory
        self._stack = ExitStack()
        self.guarded: Guarded

    def prepare(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)

    def exec(self) -> None:
        kind = "ottla" if self.name == "ottla" else "apache"
        self.guarded = self._stack.enter_context(guarded_node(kind, self._directory, AUTHORIZER))
        self.port = int(self.guarded.plain.rpartition(":")[2])
        self.pid = self.guarded.node.pid or 0

    def stop(self) -> None:
        self._stack.close()


def measure_logins(broker: GuardedBroker, options: argparse.Namespace) -> Figures:
    scale: Scale = options.scale
    token = broker.guarded.tokens.file("bench", broker.guarded.tokens.make())
    for door in ("SASL", "BOTH"):
        for mechanism in MECHANISMS:
            if mechanism == "OAUTHBEARER" and door == "SASL":
                continue
            properties = broker.guarded.properties(door, mechanism, token_file=str(token))
            if mechanism == "OAUTHBEARER":
                properties["ottla.oauth.callback"] = f"{shown_token.__module__}:shown_token"
                _shown.append(token.read_text())
            settings = settings_of(properties)
            _log_in(broker.guarded.doors[door], settings)  # it has derived its key now
            seconds, cpu = under_load(broker, partial(_logins, broker.guarded.doors[door], settings, scale.logins))
            name = f"login, {mechanism}{' over TLS' if door == 'BOTH' else ''}"
            yield name, seconds / scale.logins
            yield f"{name}: broker's processor time", cpu / scale.logins


_shown: list[str] = []


def shown_token() -> str:
    return _shown[-1]


def _logins(address: str, settings: Mapping[str, object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        _log_in(address, settings)
    return time.perf_counter() - started


def _log_in(address: str, settings: Mapping[str, object]) -> None:
    with BlockingClient(address, **settings):  # type: ignore[arg-type]
        pass


def measure_load(broker: GuardedBroker, options: argparse.Namespace) -> Figures:
    scale: Scale = options.scale
    count = scale.load_bytes // VALUE_BYTES
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(broker.guarded.ca)}
    for name, address, security in (("no TLS", broker.guarded.plain, {}), ("TLS", broker.guarded.tls, tls)):
        port, topic = int(address.rpartition(":")[2]), f"load-{name.replace(' ', '-')}"
        client = raw.RawClient(broker.port)
        raw.create_topic(client, topic)
        client.close()
        produce = partial(loads.produce, port, topic, count, VALUE_BYTES, BATCH_BYTES, security)
        seconds, cpu = under_load(broker, produce)
        yield f"produce, {name}", seconds / count
        yield f"produce, {name}: broker's processor time", cpu / count
        seconds, cpu = under_load(broker, partial(loads.fetch, port, topic, count, security))
        yield f"fetch, {name}", seconds / count
        yield f"fetch, {name}: broker's processor time", cpu / count
    yield "after the load: memory", resident_bytes(broker.pid)


def measure_rules(broker: GuardedBroker, options: argparse.Namespace) -> Figures:
    """A client whose rights are among many rules: what it writes, and what one small request takes."""
    scale: Scale = options.scale
    topic, records = "ruled", scale.load_bytes // VALUE_BYTES
    login = broker.guarded.properties("SASL", "PLAIN")
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    own |= {"sasl.username": USER, "sasl.password": PASSWORD}
    with BlockingClient(broker.guarded.plain) as admin:
        admin.call(topics.create, topics.NewTopic(topic))
        admin.call(acls.add, [_rule(topic, f"User:{USER}", each) for each in (Operation.WRITE, Operation.DESCRIBE)])
        there = 0
        for wanted in scale.rules:
            for first in range(there, wanted, RULES_AT_ONCE):
                numbers = range(first, min(first + RULES_AT_ONCE, wanted))
                admin.call(acls.add, [_rule(f"topic-{n}", f"User:user-{n % 1000}", Operation.READ) for n in numbers])
            there = wanted
            port = int(broker.guarded.sasl.rpartition(":")[2])
            produce = partial(loads.produce, port, topic, records, VALUE_BYTES, BATCH_BYTES, own)
            seconds, cpu = under_load(broker, produce)
            yield f"produce, {wanted:,} rules", seconds / records
            yield f"produce, {wanted:,} rules: broker's processor time", cpu / records
            seconds, cpu = under_load(broker, partial(_requests, broker.guarded.sasl, login, topic, scale.requests))
            yield f"request, {wanted:,} rules", seconds / scale.requests
            yield f"request, {wanted:,} rules: broker's processor time", cpu / scale.requests


def _rule(topic: str, principal: str, operation: Operation) -> acls.Acl:
    literal, allow = acls.PatternType.LITERAL, acls.Permission.ALLOW
    return acls.Acl(acls.ResourceType.TOPIC, topic, literal, principal, "*", operation, allow)


def _requests(address: str, login: Mapping[str, str], topic: str, count: int) -> float:
    wanted = {TopicPartition(topic, 0): LATEST}
    with BlockingClient(address, **settings_of(login)) as client:
        client.call(list_offsets, wanted)
        started = time.perf_counter()
        for _ in range(count):
            client.call(list_offsets, wanted)
        return time.perf_counter() - started


def measure_floods(broker: GuardedBroker, options: argparse.Namespace) -> Figures:
    """What an honest client of another listener waits for while others guess, talk nonsense or say nothing."""
    scale: Scale = options.scale
    sasl, tls = (("127.0.0.1", int(each.rpartition(":")[2])) for each in (broker.guarded.sasl, broker.guarded.tls))
    one, many = (partial(login_attacks.guess, from_many=from_many) for from_many in (False, True))
    half_open = partial(login_attacks.half_open_handshakes, tls, scale.half_open)
    attacks: dict[str, Callable[[], None]] = {
        "alone": partial(time.sleep, scale.seconds),
        f"{scale.guesses:,} guesses from one address": partial(run_elsewhere, one, sasl, scale.guesses),
        f"{scale.guesses:,} guesses, each from another address": partial(run_elsewhere, many, sasl, scale.guesses),
        f"{scale.guesses:,} logins of nonsense": partial(
            run_elsewhere, login_attacks.send_nonsense, sasl, scale.guesses
        ),
        f"{scale.half_open:,} half-open TLS handshakes": partial(hold_elsewhere, half_open, scale.seconds),
    }
    with neighbour(broker.guarded.plain) as beside:
        time.sleep(scale.seconds)  # it does not count: what is loaded or compiled on first use
        for name, attack in attacks.items():
            yield from watched(broker.pid, beside, name, attack)


PARTS: dict[str, Callable[[GuardedBroker, argparse.Namespace], Figures]] = {
    "logins": measure_logins,
    "load": measure_load,
    "rules": measure_rules,
    "floods": measure_floods,
}


def measure_all(broker: GuardedBroker, _: Path, options: argparse.Namespace) -> Figures:
    broker.prepare()
    broker.exec()
    yield from rounds.run_parts(PARTS, options, broker, options)


def is_rate(case: str) -> bool:
    return case.startswith(("login", "produce", "fetch", "request")) and not case.endswith("time")


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {'; '.join(PARTS)}", arguments, SCALES)
    return rounds.run(
        "security",
        options,
        [partial(measure_all, options=options)],
        PACKAGES,
        is_rate=is_rate,
        new_broker=lambda name, directory, settings, bytecode: GuardedBroker(name, directory),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
