"""What a formatted directory says."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from ottla.core.metadata import features
from ottla.core.metadata.format import VOTERS_CHECKPOINT
from ottla.core.metadata.snapshot import read_snapshot
from ottla.core.quorum.voters import Listener, Voter, VoterSet, voters_record
from ottla.wire.types.control_records import VotersRecord

GOLDEN = Path(__file__).parents[3] / "golden" / "storage" / "formatted"


def levels_of(variant: str) -> dict[str, int]:
    facts = json.loads((GOLDEN / variant / "format.json").read_text())
    words = facts["arguments"]
    options = list(pairwise(words))
    requested = {
        name: int(level) for flag, value in options if flag == "--feature" for name, level in [value.split("=")]
    }
    release = [features.metadata_version_of(value) for flag, value in options if flag == "--release-version"]
    return features.levels_for_format(
        requested,
        metadata_version=release[0] if release else None,
        is_dynamic_quorum="controller.quorum.voters" not in facts["settings"],
    )


def voters_of(directory: Path) -> VotersRecord | None:
    path = directory / Path(VOTERS_CHECKPOINT).name
    return read_snapshot(path.read_bytes()).voters if path.exists() else None


def standalone_voters(node_id: int, directory_id: bytes, listener: str, host: str, port: int) -> VotersRecord:
    """The voters of a quorum of one."""
    return voters_record(VoterSet((Voter(node_id, directory_id, (Listener(listener, host, port),)),)))
