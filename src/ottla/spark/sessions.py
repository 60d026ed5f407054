"""Spark sessions with the formats: new ones, and existing ones to which the formats are added."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla import __version__
from ottla.spark.errors import OttlaSparkError, explain_error
from ottla.spark.formats import FORMATS, format_class
from ottla.spark.spark_home import class_options, spark_home

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["PUSHDOWN", "register", "session"]

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Off by default, and then a reader with filters fails to plan."""
PYTHON: Final = "PYSPARK_PYTHON"
HOME: Final = "SPARK_HOME"
JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
"""They come before `spark.driver.extraJavaOptions`, which are the user's."""
CLASS_PATH: Final = "spark.driver.extraClassPath"
"""An archive of Java's classes holds for one class path."""


def session(
    master: str = "local[2]", *, app_name: str = "ottla", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with the formats. On a local master, workers use the Python of this process."""
    from pyspark.sql import SparkSession

    settings = dict(conf or {})
    if master.startswith("local"):
        # By default, workers run the first python3 on the PATH, which fails in a virtual environment.
        os.environ.setdefault(PYTHON, sys.executable)
        home = _own_home()
        if home is not None and CLASS_PATH not in settings:
            settings.setdefault(JAVA_OPTIONS, class_options(home))
    builder = SparkSession.builder.appName(app_name).master(master).config(PUSHDOWN, "true")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark, check=False)
    return spark


def _own_home() -> Path | None:
    """Give Spark a home from which it starts sooner. None if somebody has chosen a home or another Python, if Spark's
    Python processes would not find PySpark where it is installed, or if a session is there already."""
    import pyspark
    from pyspark.sql import SparkSession

    installed = Path(pyspark.__file__).parent
    found = {*site.getsitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    is_free = HOME not in os.environ and os.environ[PYTHON] == sys.executable
    if not is_free or str(installed.parent) not in found or SparkSession.getActiveSession() is not None:
        return None
    home = spark_home(installed)
    if home is not None:
        os.environ[HOME] = str(home)
    return home


def register(spark: SparkSession, *, check: bool = True) -> None:
    """Add the formats to a session, classic or Spark Connect.

    With `check`, a task of one row tests whether executors have the same version of ottla.
    """
    spark.conf.set(PUSHDOWN, "true")
    for name in FORMATS:
        if not _is_known(spark, name):
            spark.dataSource.register(format_class(name))
    if check:
        _check_executors(spark)


def _is_known(spark: SparkSession, name: str) -> bool:
    """Whether Spark knows a format already, from an earlier call or from the module that it finds by itself.

    To register it once more changes nothing, and Spark warns of it. Spark Connect cannot be asked.
    """
    jvm = getattr(spark, "_jsparkSession", None)
    return jvm is not None and bool(jvm.sessionState().dataSourceManager().dataSourceExists(name))


def _check_executors(spark: SparkSession) -> None:
    advice = "install the same ottla[spark] on every node, or ship a packed environment with spark.archives"
    try:
        row = spark.range(1).mapInArrow(_executor_version, "version string").first()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is said why there is no session to work with)
        raise OttlaSparkError(f"executors cannot run ottla: {explain_error(error)}; {advice}") from None
    version = None if row is None else row["version"]
    if version != __version__:
        raise OttlaSparkError(f"executors have ottla {version}, the driver has {__version__}; {advice}")


def _executor_version(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"version": [__version__] * batch.num_rows})
