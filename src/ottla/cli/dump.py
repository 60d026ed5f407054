"""`ottla dump`: the files of a log directory, one JSON object per line."""

from __future__ import annotations

import json
import sys

import click

from ottla.cli.failure import Failure


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--batches", "batches_only", is_flag=True, help="Show batches without their records.")
@click.option("--topic", help="The internal topic of the records; by default the directory's name.")
def dump(path: str, batches_only: bool, topic: str | None) -> None:
    """Dump a file or directory of a Kafka or ottla log, one JSON object per line.

    PATH is a segment, a tail that recovery truncated (.log.cut), an index, a producer snapshot, a metadata snapshot, a
    checkpoint, quorum-state, meta.properties, or a directory of these. Records of internal topics are decoded. Damage
    is reported, and valid data after it is shown. Nothing is changed, and a broker may keep running; its active segment
    may end with a batch that is still being written.
    """
    from ottla.log.disk import OsDisk
    from ottla.log.dump import Options, UnknownFileError
    from ottla.log.dump import dump as lines

    try:
        for line in lines(OsDisk(), path, Options(records=not batches_only, topic=topic)):
            click.echo(json.dumps(line, ensure_ascii=False))
    except UnknownFileError as error:
        advice = "name a segment, an index, a snapshot, a checkpoint or a directory of these"
        raise Failure(str(error), advice) from None
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        sys.stderr.close()
