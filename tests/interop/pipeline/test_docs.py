"""The commands of pipeline.md and the programs of report.md, word for word."""

from __future__ import annotations

from pathlib import Path

from tests.docs.blocks import DOCS, Block, blocks, steps
from tests.docs.following import follow, run
from tests.docs.sessions import session
from tests.interop.pipeline.conftest import Cluster


def of_language(page: Path, language: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == language]


def test_a_run_its_report_in_python_and_a_stream(cluster: Cluster, tmp_path: Path):
    batch, stream = of_language(DOCS / "how-to" / "pipeline.md", "console")
    port = int(cluster.broker.bootstrap_servers.rpartition(":")[2])
    with session(tmp_path / "reader", port) as shell:
        (shell.directory / "kafka").symlink_to(cluster.broker.data_dir)
        run(batch, shell)
        programs = of_language(DOCS / "reference" / "report.md", "python")
        follow([programs[0]._replace(text="".join(each.text for each in programs))], shell)
        assert (shell.directory / "mine.html").stat().st_size > 10_000
        (step,) = steps(stream)
        shell.open_terminal(step)
