"""The Java programs of docs/how-to/share.md and docs/how-to/test-recipes.md do what the pages say."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS
from tests.interop import process
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.share.brokers import Cluster

QUIET = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}
USES_BROKER = """
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

public final class UsesBroker {
    public static void main(String[] arguments) throws Exception {
        try (var broker = new OttlaBroker().start();
             var admin = Admin.create(Map.of("bootstrap.servers", broker.getBootstrapServers()))) {
            System.out.println(admin.describeCluster().nodes().get().size() + " node");
        }
    }
}
"""


def program(page: str, name: str) -> str:
    """The class on the page."""
    text = (DOCS / "how-to" / page).read_text(encoding="utf-8")
    [found] = [each for each in re.findall(r"^```java\n(.*?)^```", text, re.M | re.S) if f"class {name} " in each]
    return found


def run(directory: Path, main: str, *arguments: str, **programs: str) -> str:
    sources = []
    for name, text in programs.items():
        sources.append(directory / f"{name}.java")
        sources[-1].write_text(text)
    classes = class_files(f"docs-{main}", sources, APACHE_KAFKA)
    command = process.java(classpath(APACHE_KAFKA, classes), main, *arguments, properties=QUIET)
    return process.run(command, timeout_s=120)


def test_the_share_consumer(cluster: Cluster, tmp_path: Path) -> None:
    printed = run(tmp_path, "Workers", cluster.bootstrap_servers, Workers=program("share.md", "Workers"))
    assert printed.strip() == "10 jobs done"


def test_the_broker_for_junit(apache_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("OTTLA_INTEROP_BROKERS", raising=False)  # to a node it would be a setting
    broker = program("test-recipes.md", "OttlaBroker")
    assert run(tmp_path, "UsesBroker", OttlaBroker=broker, UsesBroker=USES_BROKER).strip() == "1 node"
