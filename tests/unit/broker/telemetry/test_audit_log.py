"""The file of the audit log: written in the background, bounded, rotated, and harmless to read."""

from __future__ import annotations

import json
from collections.abc import Callable

from ottla.broker.telemetry.audit_log import LINES_MAX, AuditLog
from ottla.testing.disk import VirtualDisk

PATH = "/data/audit.jsonl"


class Background:
    """Work that waits until it is told to go on."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self.jobs.append((work, then))

    def run(self) -> None:
        while self.jobs:
            work, then = self.jobs.pop(0)
            work()
            then()


def opened(disk: VirtualDisk, background: Background, **limits: int) -> AuditLog:
    if not disk.exists("/data"):
        disk.make_directory("/data")
    return AuditLog(
        disk, PATH, background, lambda: 1_763_300_000_123, **({"max_bytes": 1 << 20, "max_files": 3} | limits)
    )


def lines(disk: VirtualDisk, path: str = PATH) -> list[dict[str, object]]:
    file = disk.open(path)
    return [json.loads(line) for line in file.read(file.size(), 0).splitlines()]


def test_lines_are_written_in_their_order_and_told_in_utc() -> None:
    disk, background = VirtualDisk(), Background()
    log = opened(disk, background)
    for number in range(3):
        log.add("login.ok", {"number": number})
    assert len(background.jobs) == 1, "one write at a time"
    background.run()
    assert [each["number"] for each in lines(disk)] == [0, 1, 2]
    assert lines(disk)[0]["at"] == "2025-11-16T13:33:20.123Z"


def test_a_hostile_name_does_no_harm() -> None:
    disk, background = VirtualDisk(), Background()
    log = opened(disk, background)
    log.add("login.failed", {"principal": "User:\x1b[2J\nevil\u202e"})
    background.run()
    file = disk.open(PATH)
    raw = file.read(file.size(), 0)
    assert raw.isascii()
    assert raw.count(b"\n") == 1
    assert b"\x1b" not in raw
    assert lines(disk)[0]["principal"] == "User:\x1b[2J\nevil\u202e"


def test_lines_beyond_the_limit_are_counted() -> None:
    disk, background = VirtualDisk(), Background()
    log = opened(disk, background)
    for number in range(LINES_MAX + 11):
        log.add("login.failed", {"number": number})
    background.run()
    written = lines(disk)
    assert len(written) == LINES_MAX + 2
    assert (written[-1]["event"], written[-1]["count"]) == ("audit.lost", 10)


def test_a_large_file_makes_room_for_another() -> None:
    disk, background = VirtualDisk(), Background()
    log = opened(disk, background, max_bytes=200)
    for number in range(20):
        log.add("login.ok", {"number": number})
        background.run()
    kept = [
        each["number"] for path in (f"{PATH}.2", f"{PATH}.1", PATH) if disk.exists(path) for each in lines(disk, path)
    ]
    assert kept == list(range(int(kept[0]), 20))  # type: ignore[call-overload]
    assert not disk.exists(f"{PATH}.3")


def test_the_rest_is_written_at_the_end() -> None:
    disk, background = VirtualDisk(), Background()
    log = opened(disk, background)
    log.add("login.ok", {"number": 1})
    log.add("login.ok", {"number": 2})
    background.run()
    log.add("login.ok", {"number": 3})
    work, _ = background.jobs.pop()
    work()
    log.add("login.ok", {"number": 4})
    log.close()
    assert [each["number"] for each in lines(disk)] == [1, 2, 3, 4]
