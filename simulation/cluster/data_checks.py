"""What must hold of records, transactions, groups and share groups: plain functions over the history and the readings.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
acknowledged stays         a record that was acknowledged lies at its offset, once; none lies anywhere twice
all or nothing             of a transaction a reader of committed records sees everything or nothing, as it was told
commits stay               a group's offset is the last that was acknowledged, or one that came then or later
offsets in order           whoever reads a group's offset finds no older one than was acknowledged before
producer ids               are unique
share start                never falls
accepted stays             a record that was accepted, and acknowledged so, is never delivered again
=========================  ===========================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simulation.cluster.clients.producers import HastyProducer
from simulation.cluster.history import History, Operation
from simulation.cluster.readings import Readings

__all__ = ["data_checks"]


def data_checks(history: History, readings: Readings) -> Iterator[tuple[str, str]]:
    """The invariants that do not hold, with what is wrong."""
    checks = {
        "acknowledged stays": acknowledged_stays(history, readings),
        "all or nothing": all_or_nothing(history, readings),
        "commits stay": commits_stay(history, readings),
        "offsets in order": offsets_in_order(history),
        "producer ids": producer_ids_unique(history),
        "share start": share_start_never_falls(history),
        "accepted stays": accepted_stays(history),
    }
    for name, found in checks.items():
        for detail in found:
            yield name, detail


def acknowledged_stays(history: History, readings: Readings) -> Iterator[str]:
    places: dict[str, list[tuple[int, int]]] = {}
    for partition, records in readings.values.items():
        for offset, value in records:
            places.setdefault(value, []).append((partition, offset))
    for value, found in places.items():
        if len(found) > 1 and not value.startswith(HastyProducer.KIND):  # who is not idempotent may write twice
            yield f"{value} lies at {found}"
    for operation in history.of("produce"):
        if operation.is_done and places.get(operation.subject) != [operation.result]:
            found = places.get(operation.subject, [])
            yield f"{operation.subject} was acknowledged at {operation.result}, and lies at {found}"


def all_or_nothing(history: History, readings: Readings) -> Iterator[str]:
    seen = Counter(value for records in readings.committed_values.values() for _, value in records)
    for operation in history.of("transaction"):
        values, mark, wants_commit = operation.subject
        there = [value for value in values if seen[value]]
        if operation.result == "committed" and len(there) < len(values):
            yield f"of {values} of {operation.client}, which were committed, only {there} are there"
        elif not wants_commit and there:
            yield f"{there} of {operation.client} are there, which were never to be committed"
        elif there and len(there) < len(values):
            yield f"of {values} of {operation.client} only {there} are there"
        elif there and mark is not None and readings.offsets.get((f"group of {operation.client}", 0), -1) < mark:
            yield f"{there} of {operation.client} are there, and the offset {mark} is not"


def commits_stay(history: History, readings: Readings) -> Iterator[str]:
    for key, commits in _by_partition(history).items():
        final = readings.offsets.get(key)
        if any(each.is_done for each in commits) and not _may_be_last(commits, final):
            last = max((each for each in commits if each.is_done), key=lambda each: each.began_ms)
            yield f"{key} was set to {last.subject[2]} at {last.ended_ms} ms, and is {final}"


def offsets_in_order(history: History) -> Iterator[str]:
    commits = _by_partition(history)
    for read in history.of("read offset"):
        before = [each for each in commits.get(read.subject, ()) if each.began_ms <= read.ended_ms]
        done = [each for each in before if each.is_done and each.ended_ms < read.began_ms]
        if read.is_done and done and not _may_be_last(before, read.result, until_ms=read.began_ms):
            yield f"{read.client} reads {read.result} of {read.subject} at {read.ended_ms} ms"


def _by_partition(history: History) -> dict[tuple[str, int], list[Operation]]:
    found: dict[tuple[str, int], list[Operation]] = {}
    for each in history.of("commit"):
        found.setdefault((each.subject[0], each.subject[1]), []).append(each)
    return found


def _may_be_last(commits: list[Operation], value: int | None, until_ms: int | None = None) -> bool:
    """Whether no other commit was acknowledged that began after the one of a value had ended."""
    mine = next((each for each in commits if each.subject[2] == value), None)
    if mine is None:
        return False
    return not mine.is_done or not any(
        each.is_done
        and each.began_ms >= mine.ended_ms
        and each is not mine
        and (until_ms is None or each.ended_ms < until_ms)
        for each in commits
    )


def producer_ids_unique(history: History) -> Iterator[str]:
    """A transactional id keeps its producer id; no two have the same."""
    owners: dict[int, str] = {}
    for each in history.of("take id"):
        if each.is_done and owners.setdefault(each.result[1], each.client) != each.client:
            yield f"{owners[each.result[1]]} and {each.client} have the producer id {each.result[1]}"


def share_start_never_falls(history: History) -> Iterator[str]:
    seen: list[Operation] = [each for each in history.of("share start") if each.is_done]
    for number, later in enumerate(seen):
        starts = dict(later.result)
        for earlier in seen[:number]:
            if earlier.ended_ms < later.began_ms:
                for partition, start in earlier.result:
                    if starts.get(partition, start) < start:
                        yield f"of partition {partition} was {start}, and is {starts[partition]} at {later.ended_ms} ms"


def accepted_stays(history: History) -> Iterator[str]:
    accepted: dict[tuple[int, int], int] = {}
    for each in history.of("accept"):
        for place in each.result or ():
            accepted.setdefault(place, each.ended_ms)
    for each in history.of("deliver"):
        for place in each.result or ():
            if accepted.get(place, each.began_ms) < each.began_ms:
                yield f"{place}, accepted at {accepted[place]} ms, goes to {each.client} at {each.began_ms} ms"
