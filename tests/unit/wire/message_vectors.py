"""The golden vectors of messages and records, by message."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "wire"


def read_lines(stem: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{stem}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def vectors() -> dict[str, list[dict[str, Any]]]:
    """Message name -> its cases, over all versions."""
    found: dict[str, list[dict[str, Any]]] = {}
    for vector in [*read_lines("messages"), *read_lines("records")]:
        found.setdefault(vector["name"], []).append(vector)
    return found


def raw(vector: dict[str, Any]) -> bytes:
    return bytes.fromhex(vector["hex"])
