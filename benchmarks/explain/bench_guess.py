"""Guessing a message from bare bytes: how long one guess takes once everything is loaded.

    python -m benchmarks.explain.bench_guess [--rounds 15]

A frame with its header is settled by the header; a bare body and a response without its request are tried against
every message in every version.
"""

import sys
from collections.abc import Sequence

from benchmarks import runner
from benchmarks.runner import Case, Subject
from ottla.explain.guess import guess
from ottla.wire import frames, types

PACKAGES = ("msgspec",)


def heartbeats(count: int = 8) -> list[bytes]:
    """Requests that differ in their epoch."""
    return [
        frames.write_request(
            types.ConsumerGroupHeartbeatRequest(group_id="orders-app", member_id="m-1", member_epoch=epoch),
            1,
            correlation_id=epoch,
            client_id="consumer-1",
        )
        for epoch in range(count)
    ]


def responses(count: int = 8) -> list[bytes]:
    kind = types.MetadataResponse
    return [
        frames.write_response(
            kind(
                brokers=tuple(kind.MetadataResponseBroker(node, f"broker-{node}", 9092) for node in range(3 + number))
            ),
            12,
            correlation_id=number,
        )
        for number in range(count)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments)
    subjects = [
        Subject("request with header", guess, [(data,) for data in heartbeats()]),
        Subject("request, bare", guess, [(data[24:],) for data in heartbeats()]),
        Subject("response with header", guess, [(data,) for data in responses()]),
        Subject("response, bare", guess, [(data[9:],) for data in responses()]),
    ]
    runner.run("explain-guess", [Case("guess", subjects)], options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
