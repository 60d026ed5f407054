"""What was last seen of a cluster: the newest fact of each kind and subject, findings, and a bounded history.

Nothing here does input or output: samples come in, and the names of what changed go out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from ottla.health import Change, Finding
from ottla.health.cluster_history import Election
from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import (
    Cluster,
    Configs,
    Coverage,
    Fact,
    Gone,
    Group,
    Lag,
    LogDir,
    Quorum,
    ShareMetrics,
    ShareOffsets,
    ShareWindow,
    Topic,
    Transaction,
)
from ottla.health.lag_history import lag_of
from ottla.health.samples import Sample, fact_in
from ottla.health.series import LruDict
from ottla.health.share_history import ShareGroupHistory
from ottla.observe.series_history import History

__all__ = ["ClusterState", "Epochs", "Seen"]

SUBJECTS_MAX: Final = 100_000
"""How many subjects of one kind are kept."""
EVENTS_MAX: Final = 200
"""How many changes of one group's epochs are kept."""
GROUPS_WITH_EPOCHS: Final = 2_000

F = TypeVar("F", bound=Fact)


class Seen(NamedTuple, Generic[F]):
    """A fact, and when it was seen."""

    at_ms: int
    fact: F


class Epochs(NamedTuple):
    """The epochs of a group from a time on."""

    at_ms: int
    epoch: int
    assignment_epoch: int
    members: int


class ClusterState:
    """The state of one cluster, as one principal sees it."""

    def __init__(self, evaluator: SampleEvaluator) -> None:
        self.evaluator = evaluator
        self.cluster: Seen[Cluster] | None = None
        self.quorum: Seen[Quorum] | None = None
        self.history = History()
        self.errors: dict[str, tuple[int, str]] = {}
        """Kind of sample -> when it could not be taken, and why."""
        self._epochs: LruDict[str, deque[Epochs]] = LruDict(GROUPS_WITH_EPOCHS)
        self._topics: LruDict[str, Seen[Topic]] = LruDict(SUBJECTS_MAX)
        self._groups: LruDict[str, Seen[Group]] = LruDict(SUBJECTS_MAX)
        self._lags: LruDict[str, dict[tuple[str, int], Seen[Lag]]] = LruDict(SUBJECTS_MAX)
        self._share_offsets: LruDict[str, dict[tuple[str, int], Seen[ShareOffsets]]] = LruDict(SUBJECTS_MAX)
        self._windows: LruDict[str, dict[tuple[str, int], Seen[ShareWindow]]] = LruDict(SUBJECTS_MAX)
        self._log_dirs: LruDict[int, dict[str, Seen[LogDir]]] = LruDict(SUBJECTS_MAX)
        self._configs: LruDict[tuple[str, str], Seen[Configs]] = LruDict(SUBJECTS_MAX)
        self._transactions: LruDict[str, Seen[Transaction]] = LruDict(SUBJECTS_MAX)
        self._share_metrics: LruDict[tuple[str, int], Seen[ShareMetrics]] = LruDict(SUBJECTS_MAX)
        """What was read of the records of groups that somebody has looked at."""
        self.gone: LruDict[tuple[str, str], Seen[Fact]] = LruDict(SUBJECTS_MAX)
        """What was last seen of groups and topics that are gone, by kind and name."""

    # --- what was seen ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Seen[Topic]]:
        return dict(self._topics.items())

    def topic(self, name: str) -> Seen[Topic] | None:
        return self._topics.get(name)

    @property
    def groups(self) -> Mapping[str, Seen[Group]]:
        return dict(self._groups.items())

    def group(self, name: str) -> Seen[Group] | None:
        return self._groups.get(name)

    def lags(self, group: str) -> Mapping[tuple[str, int], Seen[Lag]]:
        return self._lags.get(group) or {}

    def share_offsets(self, group: str) -> Mapping[tuple[str, int], Seen[ShareOffsets]]:
        return self._share_offsets.get(group) or {}

    def windows(self, group: str) -> Mapping[tuple[str, int], Seen[ShareWindow]]:
        return self._windows.get(group) or {}

    def log_dirs(self) -> list[Seen[LogDir]]:
        return [seen for paths in self._log_dirs.values() for seen in paths.values()]

    def configs(self, resource: str, name: str) -> Mapping[str, str | None]:
        seen = self._configs.get((resource, name))
        return {} if seen is None else seen.fact.values

    def transactions(self) -> list[Seen[Transaction]]:
        return self._transactions.values()

    def share_metrics(self, group: str) -> list[Seen[ShareMetrics]]:
        return [seen for seen in self.all_share_metrics() if seen.fact.group == group]

    def all_share_metrics(self) -> list[Seen[ShareMetrics]]:
        return self._share_metrics.values()

    def share_history(self, group: str) -> ShareGroupHistory | None:
        """The deliveries of a share group over the last hour, as the rules remember them."""
        return self.evaluator.engine.share_group(group)

    def epochs(self, group: str) -> list[Epochs]:
        return list(self._epochs.get(group) or ())

    @property
    def elections(self) -> Sequence[Election]:
        """The elections of the quorum's leader since the first sample."""
        return self.evaluator.engine.elections

    @property
    def findings(self) -> list[Finding]:
        return self.evaluator.engine.findings()

    # --- taking samples -----------------------------------------------------------------------------------------------

    def take(self, sample: Sample) -> set[str]:
        """Take a sample. Returns what changed: kinds (`group`), subjects (`group:billing`) and `finding`."""
        return _subjects(self.evaluator.take(sample)) | self.keep(sample)

    def keep(self, sample: Sample) -> set[str]:
        """Keep what is in a sample that the evaluator has taken already."""
        if sample.error is not None:
            self.errors[sample.kind] = (sample.ts, sample.error)
            return {sample.kind}
        self.errors.pop(sample.kind, None)
        fact = fact_in(sample)
        return set() if fact is None else self._keep(sample.ts, fact)

    def advance(self, now_ms: int) -> set[str]:
        """Time has passed: some findings open or close by that alone."""
        return _subjects(self.evaluator.advance(now_ms))

    def _keep(self, at_ms: int, fact: Fact) -> set[str]:
        match fact:
            case Cluster():
                self.cluster = Seen(at_ms, fact)
            case Quorum():
                self._keep_quorum(at_ms, fact)
            case Topic():
                self._keep_topic(at_ms, fact)
                return {fact.kind, f"topic:{fact.topic}"}
            case Group():
                self._keep_group(at_ms, fact)
                return {fact.kind, f"group:{fact.group}"}
            case Lag():
                self._keep_lag(at_ms, fact)
                return {fact.kind, f"group:{fact.group}"}
            case ShareOffsets():
                self._keep_share_offsets(at_ms, fact)
                return {fact.kind, f"group:{fact.group}"}
            case ShareWindow():
                self._windows.touch(fact.group, dict)[fact.topic, fact.partition] = Seen(at_ms, fact)
                return {fact.kind, f"group:{fact.group}"}
            case Gone():
                return self._drop(at_ms, fact)
            case _:
                self._keep_other(at_ms, fact)
        return {fact.kind}

    def _keep_other(self, at_ms: int, fact: Fact) -> None:
        match fact:
            case LogDir():
                _put_of_round(self._log_dirs.touch(fact.node, dict), fact.path, Seen(at_ms, fact))
            case Configs():
                _put(self._configs, (fact.resource, fact.name), Seen(at_ms, fact))
            case Transaction():
                _put(self._transactions, fact.id or f"producer {fact.producer}", Seen(at_ms, fact))
            case ShareMetrics():
                _put(self._share_metrics, (fact.group, fact.node), Seen(at_ms, fact))
            case _:
                pass  # the rules use it, no page does

    def _keep_quorum(self, at_ms: int, fact: Quorum) -> None:
        self.quorum = Seen(at_ms, fact)
        if fact.high_watermark is not None:
            self.history.add("quorum", at_ms, fact.high_watermark)

    def _keep_topic(self, at_ms: int, fact: Topic) -> None:
        known = self._topics.get(fact.topic)
        if known is not None and known.fact.id != fact.id:
            self._forget_offsets(fact.topic)  # it was deleted and created again
        _put(self._topics, fact.topic, Seen(at_ms, fact))

    def _keep_group(self, at_ms: int, fact: Group) -> None:
        _put(self._groups, fact.group, Seen(at_ms, fact))
        epochs = self._epochs.touch(fact.group, lambda: deque(maxlen=EVENTS_MAX))
        now = Epochs(at_ms, fact.group_epoch, fact.assignment_epoch, len(fact.members))
        if not epochs or epochs[-1][1:] != now[1:]:
            epochs.append(now)

    def _keep_lag(self, at_ms: int, fact: Lag) -> None:
        partitions = self._lags.touch(fact.group, dict)
        _put_of_round(partitions, (fact.topic, fact.partition), Seen(at_ms, fact))
        self._note_lag(fact.group, at_ms, (lag_of(each.fact) for each in partitions.values()))

    def _keep_share_offsets(self, at_ms: int, fact: ShareOffsets) -> None:
        partitions = self._share_offsets.touch(fact.group, dict)
        _put_of_round(partitions, (fact.topic, fact.partition), Seen(at_ms, fact))
        self._note_lag(fact.group, at_ms, (each.fact.lag for each in partitions.values()))

    def _note_lag(self, group: str, at_ms: int, lags: Iterable[int | None]) -> None:
        known = [each for each in lags if each is not None]
        if known:
            self.history.add(f"lag:{group}", at_ms, sum(known))

    def _drop(self, at_ms: int, gone: Gone) -> set[str]:
        if gone.what == "group":
            last: Seen[Group] | Seen[Topic] | None = self._groups.pop(gone.name)
            for kept in (self._lags, self._share_offsets, self._windows):
                kept.pop(gone.name)
            self.history.forget(f"lag:{gone.name}")
        elif gone.what == "topic":
            last = self._topics.pop(gone.name)
            self._forget_offsets(gone.name)
        else:
            last = None
            self._transactions.pop(gone.name)
        if last is not None:
            lost: Seen[Fact] = Seen(at_ms, last.fact)
            _put(self.gone, (gone.what, gone.name), lost)
        return {gone.what, f"{gone.what}:{gone.name}"}

    def _forget_offsets(self, topic: str) -> None:
        """Forget the offsets of all groups in a topic that is gone."""
        for kept in (self._lags, self._share_offsets, self._windows):
            for partitions in kept.values():
                for at in [each for each in partitions if each[0] == topic]:
                    del partitions[at]

    @property
    def hidden(self) -> list[Coverage]:
        return self.evaluator.hidden


K = TypeVar("K")
V = TypeVar("V")


def _put(kept: LruDict[K, V], key: K, value: V) -> None:
    kept.pop(key)
    kept.touch(key, lambda: value)


def _put_of_round(kept: dict[K, Seen[F]], key: K, seen: Seen[F]) -> None:
    """Keep what was seen of a group in a partition, or of a directory of a node, the newest last.

    A probe tells all partitions of a group, or all directories of a node, at one time. What the last one did not tell
    is gone: the offset was deleted, or the node no longer uses the directory.
    """
    last_ms = next(reversed(kept.values())).at_ms if kept else seen.at_ms
    if seen.at_ms > last_ms:
        for each in [each for each, known in kept.items() if known.at_ms < last_ms]:
            del kept[each]
    kept.pop(key, None)
    kept[key] = seen


def _subjects(changes: Iterable[Change]) -> set[str]:
    changed: set[str] = set()
    for each in changes:
        subject = each.finding.subject
        changed |= {"finding", f"{subject.kind}:{subject.name}"}
    return changed
