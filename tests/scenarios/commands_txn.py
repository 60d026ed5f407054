"""Commands for conversations with the transaction coordinator. All are about transactional id a unless they say so.

init p [version] [{fields}]       InitProducerId; p is a name for the producer, and remembers the id and epoch it gets
own p [version]                   InitProducerId with the id and epoch that p has
add p t-0 t-1 ... [old]           AddPartitions as brokers do for version 2; `old` as producers of version 1 do
verify p t-0 t-1 ...              VerifyPartitions
end p commit|abort [version] [{fields}]   EndTxn with the id and epoch that p has
describe [a] | list [{fields}]    DescribeTransaction, ListTransactions
taken 1000                        a producer id for the oldest request that waits for one
marked [t-0=CODE ...]             how partitions have taken the oldest markers that are to be written; NONE if not told
elsewhere t-0                     another node leads a partition
epoch 32766                       the producer of the id has this epoch, however it came to it
"""

from __future__ import annotations

from typing import Any

import msgspec

from ottla.core.coordinator.contract import Outcome, Result
from ottla.core.txn.coordinator import TransactionCoordinator
from ottla.core.txn.messages import (
    AddPartitions,
    DescribeTransaction,
    ListTransactions,
    TakeProducerId,
    VerifyPartitions,
)
from ottla.core.txn.transaction import Partition, to_record
from ottla.wire.errors import ErrorCode
from simulation.commands import Words, command
from simulation.scenario import Scenario, Token


def told(scenario: Scenario, client: str) -> dict[str, Any]:
    """The producer id and epoch that a producer was last given. It keeps them when an answer has none."""
    known = scenario.client(client).told
    if known.get("producer_id", -1) >= 0:
        known["own"] = {name: known.get(name, 0) for name in ("producer_id", "producer_epoch")}
    own: dict[str, Any] = known.get("own", {"producer_id": -1, "producer_epoch": -1})
    return own


def partition_of(text: str) -> Partition:
    topic, _, number = text.rpartition("-")
    return Partition(topic, int(number))


def ask(scenario: Scenario, client: str, request: object) -> None:
    """Put a request of our own to the coordinator."""
    scenario.host.handle(request, Token(client, type(request).__name__, 0), authorize=scenario.authorize)


@command("init")
def init(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    given = words.value() if words.text else {}
    fields = {"transactional_id": "a", "transaction_timeout_ms": 60_000} | given
    scenario.send(client, "InitProducerId", 5 if version is None else version, fields)


@command("own")
def own(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    fields = {"transactional_id": "a", "transaction_timeout_ms": 60_000} | told(scenario, client)
    scenario.send(client, "InitProducerId", 5 if version is None else version, fields)


@command("add")
def add(scenario: Scenario, words: Words) -> None:
    client, rest = words.next(), words.text.split()
    partitions = frozenset(partition_of(word) for word in rest if word != "old")
    version = 0 if "old" in rest else 2
    ask(scenario, client, AddPartitions("a", *told(scenario, client).values(), partitions, version))


@command("verify")
def verify(scenario: Scenario, words: Words) -> None:
    client, partitions = words.next(), frozenset(map(partition_of, words.text.split()))
    ask(scenario, client, VerifyPartitions("a", *told(scenario, client).values(), partitions))


@command("end")
def end(scenario: Scenario, words: Words) -> None:
    client, committed, version = words.next(), {"commit": True, "abort": False}[words.next()], words.next_number()
    given = words.value() if words.text else {}
    fields = {"transactional_id": "a", **told(scenario, client), "committed": committed} | given
    scenario.send(client, "EndTxn", 5 if version is None else version, fields)


@command("describe")
def describe(scenario: Scenario, words: Words) -> None:
    ask(scenario, "admin", DescribeTransaction(words.next("a")))


@command("list")
def list_all(scenario: Scenario, words: Words) -> None:
    ask(scenario, "admin", ListTransactions(**(words.value() if words.text else {})))


@command("taken")
def taken(scenario: Scenario, words: Words) -> None:
    effect, done = scenario.open_effects.pop(0)
    assert isinstance(effect, TakeProducerId)
    word = words.next()
    done(Outcome(value=int(word)) if word.isdigit() else Outcome(ErrorCode[word]))


@command("marked")
def marked(scenario: Scenario, words: Words) -> None:
    effect, done = scenario.open_effects.pop(0)
    codes = {partition_of(name): ErrorCode[code] for name, code in words.options().items()}
    done(Outcome(value={each: codes.get(each, ErrorCode.NONE) for each in effect.partitions}))


@command("elsewhere")
def elsewhere(scenario: Scenario, words: Words) -> None:
    gone = partition_of(words.next())
    core = scenario.core
    assert isinstance(core, TransactionCoordinator)
    core._is_led_here = lambda topic, partition: (topic, partition) != gone


@command("epoch")
def epoch(scenario: Scenario, words: Words) -> None:
    core, number = scenario.core, int(words.next())
    assert isinstance(core, TransactionCoordinator)
    changed = msgspec.structs.replace(core.transactions["a"], producer_epoch=number)
    scenario.host.shard.tell(lambda context: Result([to_record(changed, 2)]))
    for client in scenario.clients.values():
        client.told["producer_epoch"] = number
