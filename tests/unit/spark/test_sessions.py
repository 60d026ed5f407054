"""Sessions and what they are told, with a session that only writes it down."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from ottla import __version__
from ottla.spark import OttlaSparkError, register
from ottla.spark.formats import FORMATS
from ottla.spark.sessions import HOME, PUSHDOWN, PYTHON, _own_home


class FakeSession:
    """Answers a task of one row with the version that executors have."""

    def __init__(self, version: str | Exception) -> None:
        self.version = version
        self.settings: dict[str, str] = {}
        self.registered: list[str] = []
        self.conf = self.dataSource = self
        self._jsparkSession: Any = None

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def register(self, kind: Any) -> None:
        self.registered.append(kind.name())

    def range(self, count: int) -> "FakeSession":
        return self

    def mapInArrow(self, function: Any, schema: str) -> "FakeSession":
        return self

    def first(self) -> dict[str, str]:
        if isinstance(self.version, Exception):
            raise self.version
        return {"version": self.version}


def test_every_format_is_registered_and_filters_are_on():
    spark = FakeSession(__version__)
    register(spark)  # type: ignore[arg-type]
    assert spark.registered == list(FORMATS)
    assert spark.settings == {PUSHDOWN: "true"}


def test_formats_that_spark_knows_are_not_registered_again():
    spark = FakeSession(__version__)
    known = SimpleNamespace(dataSourceExists=lambda name: name != "ottla-log")
    state = SimpleNamespace(dataSourceManager=lambda: known)
    spark._jsparkSession = SimpleNamespace(sessionState=lambda: state)
    register(spark)  # type: ignore[arg-type]
    assert spark.registered == ["ottla-log"]
    assert spark.settings == {PUSHDOWN: "true"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """As if no session had been made in this process, and with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(PYTHON, sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(Path(pyspark.__file__).parents[1]))
    monkeypatch.setenv(HOME, "")
    monkeypatch.delenv(HOME)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    return monkeypatch


def test_workers_import_what_is_installed_not_a_zip(environment: pytest.MonkeyPatch):
    _own_home()
    home, installed = Path(os.environ[HOME]), Path(pyspark.__file__).parent
    for name in ("bin/spark-submit", "jars"):
        assert (home / name).resolve() == (installed / name).resolve()
    assert (installed / "python" / "lib" / "pyspark.zip").exists()
    assert not (home / "python").exists()


def test_a_home_and_a_python_of_the_users_choice_stay(environment: pytest.MonkeyPatch):
    environment.setenv(PYTHON, "/another/python")
    _own_home()
    assert HOME not in os.environ
    environment.setenv(PYTHON, sys.executable)
    environment.setenv(HOME, "/opt/spark")
    _own_home()
    assert os.environ[HOME] == "/opt/spark"


def test_executors_need_the_same_ottla():
    with pytest.raises(OttlaSparkError, match=r"executors have ottla 0\.0, the driver has .*; install the same"):
        register(FakeSession("0.0"))  # type: ignore[arg-type]
    missing = RuntimeError("Traceback\nModuleNotFoundError: No module named 'ottla'")
    with pytest.raises(OttlaSparkError, match="executors cannot run ottla: ModuleNotFoundError: No module"):
        register(FakeSession(missing))  # type: ignore[arg-type]
    register(FakeSession("0.0"), check=False)  # type: ignore[arg-type]
