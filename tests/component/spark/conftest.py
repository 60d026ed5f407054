"""One small Spark for all tests that need one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Pacific/Auckland",  # tables are laid out by UTC, wherever the session is
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Compiling plans that run once takes longer than running them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1h",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in this process, with the formats of ottla."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from ottla.spark import session

    made = session("local[2]", app_name="tests", conf=CONF)
    yield made
    made.stop()
