"""Divides the files that a process may open between connections and logs.

A process at its limit can neither accept a connection nor open a segment nor load code. The last two must always be
possible, whatever clients do: a segment that cannot be opened looks like a broken disk. So connections get what is left
when logs and a reserve have been set aside, and beyond that they wait in the backlog.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FILES_MAX", "FileShares", "current_limit", "raise_limit", "shares_of"]

FILES_MAX: Final = 1 << 20
"""Where the system sets no limit."""
RESERVE: Final = 24
"""For code that is loaded late, checkpoints, locks, the loop itself."""
_LOGS_PART: Final = 4
"""Logs get at most every fourth file."""


class FileShares(NamedTuple):
    logs: int
    connections: int


def shares_of(limit: int, wanted_for_logs: int) -> FileShares:
    logs = max(min(wanted_for_logs, limit // _LOGS_PART), 1)
    return FileShares(logs, max(limit - logs - RESERVE, 1))


def current_limit() -> int:
    try:
        import resource
    except ImportError:  # Windows, whose sockets are no files
        return FILES_MAX
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FILES_MAX if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> None:
    """Take what the process may have. The usual 1,024 are meant for programs that do not know better; the JVM does the
    same."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
