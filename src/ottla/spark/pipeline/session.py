"""The Spark session of the pipeline: quiet, quick to start, and small by default."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.spark_home import java_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DELTA_CONF", "check_java", "check_machine", "pipeline_session"]

JAVA_LOWEST: Final = 17
STANDARD_ERROR: Final = 2
SCALA: Final = "2.13"
DELTA_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta reads the log of a table in 50 tasks, each time it looks at the table. These logs have few lines.
    "spark.databricks.delta.snapshotPartitions": "2",
}
SHORT_LIFE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that runs for seconds does not benefit from its optimising compiler."""
_CONF: Final = {
    "spark.ui.enabled": "false",
    # Spark keeps what its own pages would show, even if it has none. A stream would gather that for hours.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # A few megabytes of records or commits take a task seconds.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.files.maxPartitionBytes": "16m",
    # The hours that have samples are few beside the commits that are joined with them, which need not be shuffled then.
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
}
_LOCAL: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_NEWEST_SPARK: Final = re.compile(r"^pyspark\b.*<=(\d+\.\d+)")
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


def pipeline_session(
    master: str, *, log: Path, delta: bool = False, is_small: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A session of the given master, whose JVM and workers log to a file. `is_small`: it will not have much to do."""
    from ottla.spark.sessions import register, session

    settings = dict(_CONF)
    if master.startswith("local"):
        settings |= _LOCAL
    if is_small:
        settings["spark.driver.extraJavaOptions"] = SHORT_LIFE
    if delta:
        settings |= DELTA_CONF
        if "spark.jars" not in (conf or {}):  # else Delta's jars are expected to be among them
            settings["spark.jars.packages"] = _delta_package()
    with _errors_into(log):
        spark = session(master, app_name="ottla pipeline", conf={**settings, **(conf or {})})
        if not master.startswith("local"):
            register(spark)
    return spark


@contextmanager
def _errors_into(log: Path) -> Iterator[None]:
    """Processes that are started in this context (the JVM and its workers) write their standard error to the file. What
    this process says meanwhile is seen as usual."""
    _keep_own_errors()
    kept = os.dup(STANDARD_ERROR)
    with log.open("ab") as file:
        os.dup2(file.fileno(), STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)


def _keep_own_errors() -> None:
    """Let this process write to its standard error by another descriptor, which it keeps from now on: other threads may
    be writing."""
    try:
        is_shared = sys.stderr.fileno() == STANDARD_ERROR
    except OSError:  # it is no file, as in some tests
        return
    if is_shared:
        sys.stderr.flush()
        sys.stderr = open(  # noqa: SIM115  # for as long as the process lives
            os.dup(STANDARD_ERROR), "w", encoding=sys.stderr.encoding, errors=sys.stderr.errors, buffering=1
        )


def check_machine(*, delta: bool = False) -> None:
    """Raises OttlaSparkError if pyspark or Java is missing, or Java is too old."""
    _check_pyspark()
    check_java()
    if delta:
        _delta_package()


def _check_pyspark() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow", "numpy", "pandas") if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise OttlaSparkError(f'{", ".join(missing)} {are} not installed: pip install "ottla[spark]"')


def _delta_package() -> str:
    """The jar of Delta. Raises OttlaSparkError if delta-spark is missing, or too old for the pyspark that is there."""
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        delta, wanted = version("delta-spark"), requires("delta-spark") or ()
    except PackageNotFoundError:
        raise OttlaSparkError('delta-spark is not installed: pip install "ottla[delta]"') from None
    spark = version("pyspark").split(".")[:2]
    newest = next((found[1].split(".") for each in wanted if (found := _NEWEST_SPARK.search(each))), spark)
    if [*map(int, spark)] > [*map(int, newest)]:
        raise OttlaSparkError(
            f"delta-spark {delta} works with pyspark {'.'.join(newest)} at the newest, and pyspark "
            f'{version("pyspark")} is installed: pip install "ottla[delta]", or leave --delta out'
        )
    return f"io.delta:delta-spark_{'.'.join(spark)}_{SCALA}:{delta}"


def check_java() -> None:
    """Raises OttlaSparkError unless there is a Java that Spark accepts. Like Spark, it looks in JAVA_HOME first."""
    program = java_program()
    where = "in JAVA_HOME" if os.environ.get("JAVA_HOME") else "on the PATH"
    if program is None or not program.exists():
        raise OttlaSparkError(f"Spark needs Java {JAVA_LOWEST} or newer, but found none {where}: set JAVA_HOME")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = _VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise OttlaSparkError(f"the Java version of {program} is unknown: set JAVA_HOME")
    if int(found[1]) < JAVA_LOWEST:
        raise OttlaSparkError(
            f"Spark needs Java {JAVA_LOWEST} or newer; found {found[1]}{found[2]} {where}: set JAVA_HOME"
        )
