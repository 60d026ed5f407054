"""Checks that every record is accounted for: compares the journals of the producers with those of the readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.journal import Entry, entries
from ottla.cli.demo.plan import AUDIT, BILLING, LINES, ORDERS, PAYMENTS, RISK_CHECKS, WORD_TOTALS
from ottla.cli.demo.workloads.producers import WORDS_A_LINE

__all__ = ["Account", "accounts"]

Record = tuple[str, int, int]
"""Topic, partition, offset."""


class Account(NamedTuple):
    """The records of one topic in one group. It is balanced if none is missing and none is there that must not be."""

    group: str
    topic: str
    written: int
    done: int
    wrong: tuple[str, ...] = ()

    @property
    def is_balanced(self) -> bool:
        return not self.wrong

    def facts(self) -> dict[str, Any]:
        return {**self._asdict(), "wrong": list(self.wrong), "balanced": self.is_balanced}


def accounts(directory: DemoDirectory) -> list[Account]:
    written = _records(entries(directory.journal_of("producers"), "written"))
    poison = {(e["topic"], e["partition"], e["offset"]) for e in entries(directory.journal_of("producers"), "poison")}
    by_topic = {topic: {record for record in written if record[0] == topic} for topic in (ORDERS, PAYMENTS, LINES)}
    return [
        _read(directory, BILLING, "billing-*", by_topic[ORDERS], ORDERS),
        _read(directory, AUDIT, AUDIT, by_topic[ORDERS], ORDERS),
        _shared(directory, by_topic[PAYMENTS], poison),
        _counted(directory, by_topic[LINES]),
    ]


def _records(journal: Iterable[Entry]) -> Counter[Record]:
    found: Counter[Record] = Counter()
    for entry in journal:
        for topic, partition, first, last in entry["ranges"]:
            found.update((topic, partition, offset) for offset in range(first, last + 1))
    return found


def _of(directory: DemoDirectory, pattern: str, *what: str) -> Counter[Record]:
    paths = sorted(directory.journal.glob(f"{pattern}.jsonl"))
    return sum((_records(entries(path, *what)) for path in paths), Counter())


def _read(directory: DemoDirectory, group: str, pattern: str, written: set[Record], topic: str) -> Account:
    """Each record is committed once: a commit after a crash begins where the last one ended.

    What a member was about to commit may be committed without its knowing it: it was killed before it could write that
    down, or asked again when no answer came, and was refused since its session had ended meanwhile.
    """
    done = _of(directory, pattern, "committed")
    doubted = set(_of(directory, pattern, "commits"))
    wrong = [*_lacking("not committed", written - set(done) - doubted), *_lacking("committed twice", _repeated(done))]
    return Account(group, topic, len(written), len(set(done) | doubted), tuple(wrong))


def _shared(directory: DemoDirectory, written: set[Record], poison: set[Record]) -> Account:
    """Each record is accepted once; poison never is. If a response was lost, twice is allowed."""
    journal = directory.journal_of(RISK_CHECKS)
    done = _records(entries(journal, "accepted"))
    doubted = set(_records(entries(journal, "doubted")))
    wrong = [
        *_lacking("not accepted", written - poison - set(done) - doubted),
        *_lacking("accepted twice", _repeated(done) - doubted),
        *_lacking("poison, but accepted", poison & set(done)),
    ]
    return Account(RISK_CHECKS, PAYMENTS, len(written), len(set(done) | doubted), tuple(wrong))


def _counted(directory: DemoDirectory, written: set[Record]) -> Account:
    """Kafka Streams counts words at least once each; our own member commits lines."""
    totals = [
        entry["words"]
        for path in sorted(directory.journal.glob(f"{WORD_TOTALS}-*.jsonl"))
        for entry in entries(path, "counted")
    ]
    if not totals:
        return _read(directory, WORD_TOTALS, f"{WORD_TOTALS}-*", written, LINES)
    words = sum(totals)
    missing = len(written) * WORDS_A_LINE - words
    wrong = (f"{missing} words not counted",) if missing > 0 or min(totals) < 0 else ()
    return Account(WORD_TOTALS, LINES, len(written), words // WORDS_A_LINE, wrong)


def _repeated(done: Counter[Record]) -> set[Record]:
    return {record for record, count in done.items() if count > 1}


def _lacking(what: str, records: set[Record]) -> list[str]:
    if not records:
        return []
    topic, partition, offset = min(records)
    return [f"{len(records)} {what}, first {topic}-{partition} offset {offset}"]
