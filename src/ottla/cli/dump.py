"""`ottla dump`: the files of a log directory, one JSON object to a line."""

from __future__ import annotations

import json
import sys

import click

from ottla.cli.failure import Failure


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--batches", "batches_only", is_flag=True, help="Show batches without their records.")
@click.option("--topic", help="Decode records as those of this internal topic; else the directory's name tells.")
def dump(path: str, batches_only: bool, topic: str | None) -> None:
    """Show what is in a file or directory of Kafka's or ottla's log, one JSON object to a line.

    PATH is a segment, what recovery has cut off one (.log.cut), an index, a producer snapshot, a quorum snapshot, a
    checkpoint, quorum-state, meta.properties, or a directory of these. Records of internal topics are decoded into
    their types. Damage is named, and what is sound behind it is shown. Nothing is changed, and a running broker is not
    disturbed; its active segment may end with a batch that is still being written.
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
    except BrokenPipeError:  # a reader such as head has seen enough
        sys.stderr.close()
