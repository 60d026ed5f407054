"""`ottla docs build`: a folder of its own, replaced as a whole, and nobody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.explain import site
from ottla.explain.site import SiteFile


@pytest.fixture(autouse=True)
def small_site(monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> Iterator[SiteFile]:
        yield SiteFile("index.html", "list é")
        yield SiteFile("api/Fetch/request-v4.html", "page")

    monkeypatch.setattr(site, "files", files)
    monkeypatch.setattr(site, "file_count", lambda: 2)


def test_files_lie_where_the_site_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "deep" / "site"
    assert run(["docs", "build", "--out", str(out)]) == 0
    assert (out / "index.html").read_text(encoding="utf-8") == "list é"
    assert (out / "api/Fetch/request-v4.html").read_text() == "page"
    assert "2 files" in capsys.readouterr().out
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_an_older_site_is_replaced(tmp_path: Path):
    out = tmp_path / "site"
    assert run(["docs", "build", "--out", str(out)]) == 0
    (out / "stale.html").touch()
    assert run(["docs", "build", "--out", str(out)]) == 0
    assert not (out / "stale.html").exists()
    assert (out / "index.html").exists()


def test_an_empty_folder_is_taken(tmp_path: Path):
    assert run(["docs", "build", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "index.html").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert run(["docs", "build", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_an_interrupted_build_left_is_cleared(tmp_path: Path):
    half = tmp_path / "site.new"
    half.mkdir()
    (half / "half.html").touch()
    assert run(["docs", "build", "--out", str(tmp_path / "site")]) == 0
    assert not half.exists()
    assert not (tmp_path / "site" / "half.html").exists()
