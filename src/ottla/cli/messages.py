"""`ottla messages`: lists every message and record type of the codec."""

import json
from collections.abc import Iterable, Sequence

import click

from ottla.cli.failure import Failure, nearest
from ottla.wire import names, versions
from ottla.wire.index import MESSAGES

Row = dict[str, object]
HEADINGS = ("KEY", "NAME", "KIND", "VERSIONS", "FLEXIBLE", "NOTE")


@click.command()
@click.argument("text", required=False)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def messages(text: str | None, as_json: bool) -> None:
    """List messages and record types with their keys and versions.

    With TEXT, only those whose name contains it, ignoring case. The key is the API key of a request and its
    response, and the type id of a record; some records have none.
    """
    found = matching(text) if text else names()
    if as_json:
        rows = ",\n".join(json.dumps(described(name)) for name in found)
        click.echo(f'{{"rows": [\n{rows}\n]}}')
        return
    for line in aligned([HEADINGS, *(cells(name) for name in found)]):
        click.echo(line)


def matching(text: str) -> list[str]:
    """The names that contain `text`; raises a Failure with the nearest name if none does."""
    found = [name for name in names() if text.lower() in name.lower()]
    if not found:
        raise Failure(
            f"no message has '{text}' in its name", nearest(text, names()) or "'ottla messages' lists all messages"
        )
    return found


def described(name: str) -> Row:
    """The JSON object of a message."""
    entry = MESSAGES[name]
    return {
        "name": name,
        "kind": entry.kind,
        "key": entry.key,
        "versions": [versions(name).start, versions(name).stop - 1],
        "flexible_from": entry.flexible_low if entry.flexible_low <= entry.high else None,
        "latest_is_unstable": entry.unstable,
        "listeners": list(entry.listeners),
    }


def cells(name: str) -> tuple[str, ...]:
    """The row of a message, one text per column."""
    entry = MESSAGES[name]
    known = versions(name)
    return (
        "-" if entry.key is None else str(entry.key),
        name,
        entry.kind,
        f"{known.start}-{known.stop - 1}" if len(known) > 1 else str(known.start),
        f"{entry.flexible_low}+" if entry.flexible_low <= entry.high else "never",
        f"v{entry.high} is unstable" if entry.unstable else "",
    )


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Rows as lines with aligned columns; the first column is numeric."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        padded = [cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([first.rjust(widths[0]), *padded]).rstrip()
