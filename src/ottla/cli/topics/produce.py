"""`ottla topics produce`: writes records from arguments or from standard input."""

from __future__ import annotations

import asyncio
import codecs
import io
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import (
    Target,
    compression_option,
    json_option,
    key_and_value,
    on_cluster,
    print_json,
    target_options,
)
from ottla.cli.failure import Failure
from ottla.cli.topics.find import found_topics
from ottla.health.phrases import plural

if TYPE_CHECKING:
    from ottla.client import Client, Delivered, ProducerRecord

READ_BYTES = 64 * 1024
"""How much of standard input is sent together at most."""


@click.command()
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--key", help="The key of every record.")
@click.option("--key-separator", metavar="TEXT", help="Each value begins with its key, followed by this text.")
@click.option("--header", "headers", multiple=True, metavar="KEY=VALUE", help="A header of every record; repeatable.")
@click.option("--partition", type=click.IntRange(0), help="The partition; by default the key decides.")
@click.option("--tombstone", is_flag=True, help="Write a record with the key and a null value.")
@compression_option
@json_option
@target_options
def produce(
    target: Target,
    name: str,
    values: tuple[str, ...],
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    tombstone: bool,
    compression: str,
    as_json: bool,
) -> None:
    """Write records: one for each VALUE, or one for each line of standard input."""
    if tombstone and (values or key is None):
        raise Failure("a tombstone has a key and no value", "give --key and no VALUE")
    from ottla.client import Producer, ProducerRecord

    marks = [(name, _bytes(value)) for name, value in (key_and_value(each, "--header") for each in headers)]

    def record(text: str | None) -> ProducerRecord:
        own, value = _split(text, key, key_separator)
        return ProducerRecord(name, _bytes(value), _bytes(own), marks, partition)

    async def work(client: Client) -> list[Delivered]:
        await found_topics(client, [name])
        producer = Producer(client, compression=compression)
        done: list[Delivered] = []
        if tombstone or values:
            return await producer.send_all(map(record, values or [None]))
        async for lines in _lines():
            done += await producer.send_all(map(record, lines))
        return done

    _report(on_cluster(target, work), as_json)


def _split(text: str | None, key: str | None, separator: str | None) -> tuple[str | None, str | None]:
    if text is None or separator is None:
        return key, text
    own, found, value = text.partition(separator)
    if not found:
        raise Failure(f"{text!r} has no {separator!r} after its key")
    return own, value


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


async def _lines() -> AsyncIterator[Sequence[str]]:
    """The lines of standard input, together with as many more as have come already."""
    bytes_decoder = codecs.getincrementaldecoder(sys.stdin.encoding)("surrogateescape")
    decoder = io.IncrementalNewlineDecoder(bytes_decoder, translate=True)
    begun = ""
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source:  # noqa: ASYNC230 - it is open already
        while data := await _in_thread(lambda: source.read(READ_BYTES)):
            *lines, begun = (begun + decoder.decode(data)).split("\n")
            if lines:
                yield lines
    last = begun + decoder.decode(b"", final=True)
    if last:
        yield [last.removesuffix("\n")]


def _in_thread(read: Callable[[], bytes | None]) -> asyncio.Future[bytes | None]:
    """What `read` gives. The program can end before it gives anything: the thread is not waited for."""
    outcome: Future[bytes | None] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(read())
        except OSError as error:
            outcome.set_exception(error)

    Thread(target=run, name="ottla-standard-input", daemon=True).start()
    return asyncio.wrap_future(outcome)


def _report(done: list[Delivered], as_json: bool) -> None:
    if as_json:
        rows = [{"partition": each.partition, "offset": each.offset, "ts_ms": each.timestamp_ms} for each in done]
        print_json({"rows": rows})
        return
    if len(done) == 1:
        click.echo(f"{done[0].topic}-{done[0].partition} offset {done[0].offset}")
        return
    counts: dict[int, int] = {}
    for each in done:
        counts[each.partition] = counts.get(each.partition, 0) + 1
    shares = ", ".join(f"{count} to partition {partition}" for partition, count in sorted(counts.items()))
    click.echo(f"{plural(len(done), 'record')} written" + (f": {shares}" if shares else ""))
