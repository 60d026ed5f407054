"""A driver in a process of its own: it runs one streaming query, and may be killed on the way.

    python -m tests.interop.spark.driver '{"kind": "share", "options": {…}, "checkpoint": …, "rows": …, "batches": 3}'

`die` names a place and `at` the batch. `acquired`, `prepared`, `one-ended` and `all-ended` are places in `dying`;
`offsets` (logged, and not run), `written` (in the sink, and Spark does not know) and `commits` (Spark has committed it)
are seen from here, by Spark's own logs.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ottla.spark import explain_error, session
from tests.interop.spark import dying
from tests.interop.spark.sessions import CONF

POLL_S = 0.005


class Driver:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.checkpoint = Path(given["checkpoint"])
        self.place, self.at = given.get("die", ""), given.get("at", 0)
        os.environ.update({dying.GROUP: str(os.getpgrp()), dying.PLACE: self.place, dying.AT: str(self.at)})
        self.spark = session(given.get("master", "local[2]"), conf=CONF)
        for each in (dying.DyingShare, dying.DyingSink):
            self.spark.dataSource.register(each)

    def run(self) -> str | None:
        for place in ("offsets", "commits"):
            if self.place == place:
                _when((self.checkpoint / place / str(self.at)).exists, dying.die)
        writer = self._share() if self.given["kind"] == "share" else self._sink()
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        last = self.checkpoint / "commits" / str(self.given["batches"] - 1)
        while query.isActive and not last.exists():
            time.sleep(POLL_S)
        time.sleep(self.given.get("linger_s", 0))
        query.stop()
        error = query.exception()
        return None if error is None else explain_error(error)

    def _share(self) -> Any:
        """A share group into one file for each batch id, which is written anew if the batch runs again."""
        frame = self.spark.readStream.format("dying-share").options(**self.given["options"]).load()
        return self._crashing(frame).writeStream.foreachBatch(self._write).trigger(processingTime="100 milliseconds")

    def _write(self, frame: Any, batch_id: int) -> None:
        rows = Path(self.given["rows"])
        if self.place == "offsets" and batch_id == self.at:
            signal.pause()
        if (rows / f"{batch_id}.json").exists() and self.given.get("skips_known"):
            return
        found = [[row["partition"], row["offset"], row["deliveryCount"]] for row in frame.collect()]
        new = rows / "new"
        new.write_text(json.dumps(found))
        new.rename(rows / f"{batch_id}.json")
        with (rows / "runs").open("a") as runs:
            runs.write(f"{batch_id}\n")
        if self.place == "written" and batch_id == self.at:
            dying.die()

    def _sink(self) -> Any:
        """Numbers, in three tasks for each batch, into a topic."""
        options = {"rowsPerBatch": "300", "numPartitions": "3", "startTimestamp": "1000"}
        frame = self.spark.readStream.format("rate-micro-batch").options(**options).load()
        values = self._crashing(frame).selectExpr("cast(value as string) as value")
        return values.writeStream.format("dying-sink").options(**self.given["options"])

    def _crashing(self, frame: Any) -> Any:
        """The same rows, from tasks of which one kills its Python worker, once."""
        if "crash_mark" not in self.given:
            return frame
        mark = self.given["crash_mark"]

        def crash_once(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                yield batch
                if batch.num_rows and not os.path.exists(mark):
                    open(mark, "x").close()
                    os.kill(os.getpid(), signal.SIGKILL)

        return frame.mapInArrow(crash_once, frame.schema)


def _when(condition: Callable[[], bool], then: Callable[[], None]) -> None:
    """Look again and again, beside the query."""

    def look() -> None:
        while not condition():
            time.sleep(POLL_S)
        then()

    threading.Thread(target=look, daemon=True).start()


def main() -> None:
    os.setpgrp()
    error = Driver(json.loads(sys.argv[1])).run()
    sys.stdout.write(json.dumps({"error": error}))
    sys.stdout.flush()
    os.killpg(os.getpgrp(), signal.SIGKILL)  # the session needs no farewell


if __name__ == "__main__":
    main()
