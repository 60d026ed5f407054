"""Evaluates the health rules: takes facts ordered by time, and returns the findings at the end.

Plain Python, without Spark. The findings depend on the facts and their times alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from ottla.health import Engine, Finding, Unseen
from ottla.health.conditions import REMEMBER_MS
from ottla.health.facts import FACTS, Configs, Fact, Failed, Gone, Group, ShareState, StateBatch, read_fact
from ottla.health.finding import Tier
from ottla.health.samples import UNREACHABLE
from ottla.spark.jobs.share_state import STATE_TYPES, read_state, start_of
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import SHARE_TOPIC, decode_keyed

__all__ = ["CONFIG_RECORD", "RuleEvaluator", "finding_row"]

CONFIG_RECORD: Final = "ConfigRecord"
_RESOURCES: Final = {2: "topic", 4: "broker", 32: "group"}


class _Config(msgspec.Struct, rename="camel"):
    """A ConfigRecord of the metadata log, which is read as JSON."""

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None


_read_config: Final = msgspec.json.Decoder(_Config).decode


class RuleEvaluator:
    """The findings of one cluster. It takes rows ordered by time."""

    def __init__(self, thresholds: Mapping[str, float], topic_names: Mapping[str, str], connection: str = "") -> None:
        self._engine = Engine(thresholds, connection=connection)
        self._topic_names = topic_names
        self._configs: dict[tuple[str, str], dict[str, str | None]] = {}
        self._findings: dict[str, Finding] = {}
        self._changed: dict[str, Finding] = {}
        self._now_ms = 0
        self._taken: dict[tuple[str, str | None, int], int] = {}
        self._sampled_groups: dict[str, int] = {}
        """When groups were first sampled. From then on, their records are not used."""
        self.misfits = 0
        """How many rows had a body that does not fit their kind."""

    def take(
        self, ts: int, kind: str, error: str | None, body: bytes | None, key: bytes | None = None,
        offset: int | None = None, *, is_sample: bool = True, topic: str | None = None,
    ) -> None:  # fmt: skip
        """A sample with its body as JSON, or a record of `__share_group_state` with its key, value and offset, and the
        name of its topic if that is not among `topic_names`."""
        try:
            fact = self._fact(ts, kind, error, body, key, topic)
        except (msgspec.MsgspecError, WireError):
            self.misfits += 1
            return
        if fact is None or self._is_known(fact, ts, kind, offset, is_sample=is_sample):
            return
        self._now_ms = max(self._now_ms, ts)
        for change in self._engine.take(ts, fact, is_sample=is_sample):
            self._note(change.finding)

    def _fact(
        self, ts: int, kind: str, error: str | None, body: bytes | None, key: bytes | None, topic: str | None
    ) -> Fact | None:
        if error is not None:
            return Failed(what=kind, error=error, unreachable=error == UNREACHABLE)
        if body is None:
            return None
        if kind in STATE_TYPES:
            return self._share_state(ts, kind, key or b"", body, topic)
        if kind == CONFIG_RECORD:
            return self._config(body)
        return read_fact(kind, body) if kind in FACTS else None

    def is_sampled(self, group: str, ts: int) -> bool:
        """Whether a group was sampled before a time."""
        return self._sampled_groups.get(group, ts) < ts

    def _is_known(self, fact: Fact, ts: int, kind: str, offset: int | None, *, is_sample: bool) -> bool:
        """Whether another source tells the same: a record and a sample of it may both be there."""
        if isinstance(fact, ShareState):
            return self._is_taken(fact, kind, offset)
        if isinstance(fact, Group):
            if is_sample:
                self._sampled_groups.setdefault(fact.group, ts)
            return not is_sample and fact.group in self._sampled_groups
        return not is_sample and isinstance(fact, Gone) and fact.name in self._sampled_groups

    def _is_taken(self, fact: ShareState, kind: str, offset: int | None) -> bool:
        at = offset if kind in STATE_TYPES else fact.offset
        place = (fact.group, fact.topic_id, fact.partition)
        if at is None:
            return False
        if at <= self._taken.get(place, -1):
            return True
        self._taken[place] = at
        return False

    def _share_state(self, ts: int, kind: str, key: bytes, value: bytes, topic: str | None) -> ShareState:
        place, state = decode_keyed(SHARE_TOPIC, key, None).key, read_state(kind, value)
        topic_id = uuid_text(place.topic_id)
        batches = (
            StateBatch(
                first=each.first_offset, last=each.last_offset, state=each.delivery_state, count=each.delivery_count
            )
            for each in state.state_batches
        )
        return ShareState(
            group=place.group_id,
            topic=topic or self._topic_names.get(topic_id),
            topic_id=topic_id,
            partition=place.partition,
            record=kind,
            start=start_of(state),
            batches=tuple(batches),
            written_ms=ts,
            delivery_complete=None if state.delivery_complete_count < 0 else state.delivery_complete_count,
        )

    def _config(self, value: bytes) -> Configs | None:
        """A record holds one config; the fact holds all configs of the resource that are known."""
        told = _read_config(value)
        resource = _RESOURCES.get(told.resource_type)
        if resource is None:
            return None
        values = self._configs.setdefault((resource, told.resource_name), {})
        values[told.name] = told.value
        return Configs(resource=resource, name=told.resource_name, values=dict(values))

    def findings(self) -> Iterator[Finding]:
        """All findings as of the last fact, the oldest first."""
        self._settle()
        return iter(sorted(self._findings.values(), key=lambda each: (each.since_ms, each.rule, each.id)))

    def changed(self) -> list[Finding]:
        """The findings that may have changed since the last call."""
        self._settle()
        changed, self._changed = self._changed, {}
        return list(changed.values())

    def known(self) -> Collection[Finding]:
        """All findings that are not forgotten, as they were when they were asked for last."""
        return self._findings.values()

    def _settle(self) -> None:
        """Bring the findings up to the time of the last fact."""
        for change in self._engine.advance(self._now_ms):
            self._note(change.finding)
        for each in self._engine.open_findings():  # evidence may have grown since the last change
            if self._findings.get(each.id) is not each:
                self._note(each)

    def _note(self, finding: Finding) -> None:
        self._findings[finding.id] = self._changed[finding.id] = finding

    def forget(self, before_ms: int) -> None:
        """Forget findings that facts from this time on cannot change, and which ones have changed so far."""
        resolved_ms = before_ms - REMEMBER_MS
        self._findings = {
            name: each
            for name, each in self._findings.items()
            if not isinstance(each.until_ms, int) or each.until_ms >= resolved_ms
        }
        self._changed = {}

    def unseen(self) -> list[Unseen]:
        return self._engine.unseen()

    @property
    def forgotten(self) -> int:
        return self._engine.forgotten


def finding_row(cluster: str, finding: Finding) -> dict[str, Any]:
    """A finding as a row of its table."""
    told = msgspec.to_builtins(finding)
    subject = told["subject"]
    return {
        "cluster": cluster,
        **{name: told[name] for name in ("id", "rule", "severity", "state", "sentence", "since_ms", "times", "tier")},
        **{f"subject_{name}": subject.get(name) for name in ("kind", "name", "topic", "partition", "member")},
        "until_ms": told.get("until_ms"),
        "precision_ms": told.get("precision_ms"),
        "evidence": msgspec.json.encode(told["evidence"]).decode(),
        "next": msgspec.json.encode(told["next"]).decode(),
        "source": "records" if finding.tier is Tier.RECORDS else "samples",
    }
