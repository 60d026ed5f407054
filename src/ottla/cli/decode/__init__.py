"""`ottla decode`: decodes bytes, or a whole capture.

`input` reads the command line, `message` shows one message or record batches, `capture` the conversations of a packet
capture; both print with `printer`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.explain.input_text import Form

PORT = click.IntRange(1, 65_535)
FORM = click.Choice(["hex", "base64", "raw"])


@click.command()
@click.argument("words", metavar="[[NAME [VERSION]] HEX|BASE64|@FILE|-]", nargs=-1)
@click.option("--pcap", metavar="FILE", help="Decode a packet capture (pcap or pcapng); - for standard input.")
@click.option("--port", "ports", metavar="PORT", type=PORT, multiple=True, help="Only brokers on this port.")
@click.option("--api", "apis", metavar="NAME|KEY", multiple=True, help="Only this API; repeatable.")
@click.option(
    "--client-id", "client_ids", metavar="TEXT", multiple=True, help="Only this client; * and ? are wildcards."
)
@click.option("--group", "groups", metavar="TEXT", multiple=True, help="Only this group; * and ? are wildcards.")
@click.option(
    "--topic",
    "topics",
    metavar="TEXT",
    multiple=True,
    help="Only this topic; for record batches, the topic they are from.",
)
@click.option("--as", "form", type=FORM, help="The encoding of the input; guessed by default.")
@click.option("--json", "as_json", is_flag=True, help="JSON: one object for a message; for a capture, one per line.")
@click.option("-v", "--verbose", is_flag=True, help="Also show bytes between fields; for a capture, every field.")
@click.option("--width", type=click.IntRange(min=40), help="Columns to use instead of the terminal's width.")
def decode(
    words: tuple[str, ...],
    pcap: str | None,
    ports: tuple[int, ...],
    apis: tuple[str, ...],
    client_ids: tuple[str, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    form: Form | None,
    as_json: bool,
    verbose: bool,
    width: int | None,
) -> int:
    """Decode bytes field by field, or show the conversations in a packet capture.

    Bytes may be hex, a hex dump or base64, as an argument, from a file or from standard input; a file may also hold the
    raw bytes. A message may have its size and header before it. Without NAME, the message is guessed. NAME is Kafka's,
    with or without Request or Response. Record batches and log segments are decoded, too. Secrets are never shown.

    \b
    ottla decode 00000018001200030000000100026d6500066f74746c6104302e3100
    ottla decode ShareFetchRequest 2 @body.bin
    xxd frame.bin | ottla decode -
    ottla decode @00000000000000000000.log --topic __consumer_offsets
    ottla decode --pcap traffic.pcap --group orders-app -v
    """
    try:
        if pcap is not None:
            _check_alone(words)
            return _decode_capture(pcap, ports, (apis, client_ids, groups, topics), as_json, verbose, width)
        _check_no_filters(ports, apis, client_ids, groups)
        return _decode_bytes(words, topics, form, as_json, verbose, width)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        sys.stdout = None  # so that Python does not flush it at the end
        return 0


def _decode_bytes(
    words: tuple[str, ...], topics: tuple[str, ...], form: Form | None, as_json: bool, verbose: bool, width: int | None
) -> int:
    from ottla.cli.decode.input import read_input
    from ottla.cli.decode.message import How, show

    if len(topics) > 1:
        raise Failure("record batches belong to one topic", f"choose between {' and '.join(topics)}")
    return show(read_input(words, form), topics[0] if topics else None, How(as_json, verbose, width))


def _decode_capture(
    name: str,
    ports: tuple[int, ...],
    chosen: tuple[tuple[str, ...], ...],
    as_json: bool,
    verbose: bool,
    width: int | None,
) -> int:
    from ottla.cli.decode.capture import Wanted, show_capture
    from ottla.explain.filters import UnknownApi, make_filters

    try:
        filters = make_filters(*chosen)
    except UnknownApi as unknown:
        raise Failure(str(unknown), f"did you mean {unknown.nearest}?") from None
    return show_capture(name, Wanted(ports, filters, as_json, verbose, width, is_live=name == "-"))


def _check_alone(words: tuple[str, ...]) -> None:
    if words:
        raise Failure(f"'{words[0]}' and --pcap cannot both be given", "decode one of them at a time")


def _check_no_filters(
    ports: tuple[int, ...], apis: tuple[str, ...], client_ids: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    for option, given in (("--port", ports), ("--api", apis), ("--client-id", client_ids), ("--group", groups)):
        if given:
            raise Failure(f"{option} filters a capture", "give one with --pcap FILE")
