"""Spark's home in the user's cache, and the archive of classes beside it, with files that stand for them."""

import os
import time
from pathlib import Path

import pytest

from ottla.spark.spark_home import ARCHIVE, BEGUN_S, UNUSED_S, class_options, spark_home

DAY_S = 86_400


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something like an installed PySpark, and a Java."""
    for folder in ("bin", "jars", "python/lib"):
        (tmp_path / "pyspark" / folder).mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("17")
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "pyspark"


def home_of(installed: Path) -> Path:
    home = spark_home(installed)
    assert home is not None
    return home


def test_it_is_made_once_and_has_no_zip(installed: Path):
    home = home_of(installed)
    assert sorted(each.name for each in home.iterdir()) == ["bin", "jars"]
    assert (home / "jars").resolve() == installed / "jars"
    assert home_of(installed) == home
    assert [each.name for each in home.parents[1].iterdir()] == [home.parent.name]


@pytest.mark.parametrize("what", ["java", "jars", "class path"])
def test_another_java_other_jars_and_another_class_path_have_another_home(
    installed: Path, monkeypatch: pytest.MonkeyPatch, what: str
):
    before = home_of(installed)
    if what == "class path":
        monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    else:
        os.utime(Path(os.environ["JAVA_HOME"], "bin", "java") if what == "java" else installed / "jars", (1, 1))
    assert home_of(installed) != before


def test_a_cache_that_cannot_be_written_is_done_without(installed: Path, tmp_path: Path):
    (tmp_path / "cache").write_text("a file")
    assert spark_home(installed) is None


def test_homes_that_nobody_uses_are_deleted_when_another_is_made(installed: Path, monkeypatch: pytest.MonkeyPatch):
    old = home_of(installed)
    monkeypatch.setenv("CLASSPATH", "recent")
    recent = home_of(installed)
    long_ago = time.time() - UNUSED_S - DAY_S
    os.utime(old.parent, (long_ago, long_ago))
    monkeypatch.setenv("CLASSPATH", "new")
    home_of(installed)
    assert not old.exists()
    assert recent.exists()


def test_the_first_program_writes_the_archive_and_later_ones_use_it(installed: Path):
    home = home_of(installed)
    archive = home.parent / ARCHIVE
    assert f"-XX:ArchiveClassesAtExit={archive}" in class_options(home)
    archive.write_bytes(bytes(1000))
    assert class_options(home) == ""  # another process writes it now
    archive.write_bytes(b"head" + bytes(1000))
    assert f"-XX:SharedArchiveFile={archive}" in class_options(home)


def test_an_archive_whose_writer_was_killed_is_written_anew(installed: Path):
    home = home_of(installed)
    archive = home.parent / ARCHIVE
    archive.write_bytes(bytes(1000))
    begun = time.time() - BEGUN_S - 1
    os.utime(archive, (begun, begun))
    assert "ArchiveClassesAtExit" in class_options(home)


def test_a_path_with_a_space_is_one_option(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    home = home_of(installed)
    assert f"-XX:ArchiveClassesAtExit='{home.parent / ARCHIVE}'" in class_options(home)
