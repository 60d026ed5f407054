"""The totals at the end, as lines."""

from collections.abc import Iterator, Sequence

from ottla.cli.proxy.summary import Row
from ottla.cli.proxy.watch import Watch
from ottla.explain.show_exchange import latency_text
from ottla.explain.values_text import count_text

HEADINGS = ("API", "EXCHANGES", "NO RESPONSE", "P50", "P99", "ERRORS")


def report_lines(watch: Watch) -> Iterator[str]:
    """A table with a row per API, then the totals."""
    rows = watch.summary.rows()
    if rows:
        yield from aligned([HEADINGS, *map(cells, rows)])
    total = [
        f"{count_text(watch.summary.exchanges, 'exchange')} on {count_text(watch.connections, 'connection')}",
        *([f"{watch.filtered_out} filtered out"] if watch.filtered_out else []),
        *([f"{count_text(watch.summary.unread, 'message')} could not be read"] if watch.summary.unread else []),
    ]
    yield ", ".join(total)


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.api,
        str(row.exchanges),
        str(row.unanswered),
        "-" if row.p50_ns is None else latency_text(row.p50_ns),
        "-" if row.p99_ns is None else latency_text(row.p99_ns),
        ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in row.errors.items()),
    )


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Names aligned left, numbers aligned right, errors last and not cut."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for name, *numbers, errors in rows:
        padded = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *padded, errors]).rstrip()
