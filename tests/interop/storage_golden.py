"""Makes tests/golden/storage with Apache Kafka 4.3.1: `python -m tests.interop.storage_golden`.

Formatted directories, and the metadata log of one node's life: topics, settings, users and quotas come and go, the
node is stopped, started, killed and started again. The tests in tests/unit judge ours by them.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.interop.apache import CLUSTER_ID, ApacheKafka

GOLDEN = Path(__file__).parents[1] / "golden" / "storage"
METADATA_DIR = "__cluster_metadata-0"
VOTERS_CHECKPOINT = "00000000000000000000-0000000000.checkpoint"
DIRECTORY_ID = "dnBCA2kRSpSW6gLn6PBWoA"

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"

VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "standalone": (("--standalone",), {}),
    "release-4.0": (("--standalone", "--release-version", "4.0"), {}),
    "release-3.9": (("--standalone", "--release-version", "3.9"), {}),
    "some-features": (
        ("--standalone", "--feature", "share.version=0", "--feature", "transaction.version=1"),
        {},
    ),
    "old-metadata-version": (("--standalone", "--feature", "metadata.version=25", "--feature", "group.version=0"), {}),
    "static": ((), {"controller.quorum.voters": "1@127.0.0.1:9093"}),
    "spare": (("--no-initial-controllers",), {}),
    "initial-controllers": (
        ("--initial-controllers", f"1@127.0.0.1:9093:{DIRECTORY_ID},2@127.0.0.1:9095:5sJ9mbAnS4-xqf3tbrRPDA"),
        {},
    ),
}
"""Name -> arguments of `kafka-storage format`, and settings of the node."""


def format_with_apache(directory: Path, variant: str) -> Path:
    """A directory that Apache Kafka has formatted."""
    arguments, settings = VARIANTS[variant]
    kafka = ApacheKafka(directory, format_arguments=arguments, **settings)
    kafka.format()
    return kafka.data_dir


def write_formatted(workshop: Path) -> None:
    for variant, (arguments, settings) in VARIANTS.items():
        source = format_with_apache(workshop / variant, variant)
        target = GOLDEN / "formatted" / variant
        target.mkdir(parents=True)
        for path in [*source.glob("*"), *source.glob(f"{METADATA_DIR}/*")]:
            if path.is_file():
                (target / path.name).write_bytes(path.read_bytes())
        facts = {"arguments": arguments, "settings": settings, "clusterId": CLUSTER_ID}
        (target / "format.json").write_text(json.dumps(facts, indent=1) + "\n")


def write_life(workshop: Path) -> None:
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.max.idle.interval.ms": "30000"}
    kafka = ApacheKafka(workshop / "life", **snapshots)
    with kafka:
        live(kafka)
    kafka.start()
    kafka.kill()
    with kafka:
        kafka.create_topic("after-crash")
    source = kafka.data_dir / METADATA_DIR
    target = GOLDEN / "life"
    target.mkdir(parents=True)
    for path in [*source.glob("*.log"), *source.glob("*.checkpoint"), source / "quorum-state"]:
        (target / path.name).write_bytes(path.read_bytes())
    (target / "meta.properties").write_bytes((kafka.data_dir / "meta.properties").read_bytes())


def live(kafka: ApacheKafka) -> None:
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    kafka.create_topic("orders", partitions=3, cleanup_policy="compact", min_insync_replicas=1)
    kafka.create_topic("pay.ments")
    kafka.create_topic("gone", partitions=2, retention_ms=1000)
    kafka.tool(TOPICS, *server, "--alter", "--topic", "orders", "--partitions", "5")
    kafka.tool(TOPICS, *server, "--delete", "--topic", "gone")
    for kind, name, change in (
        ("topics", "orders", ("--add-config", "retention.ms=86400000")),
        ("topics", "orders", ("--delete-config", "retention.ms")),
        ("topics", "pay.ments", ("--add-config", "segment.bytes=1048576,cleanup.policy=[compact,delete]")),
        ("brokers", None, ("--add-config", "log.cleaner.threads=2")),
        ("brokers", "1", ("--add-config", "num.io.threads=4")),
        ("groups", "g", ("--add-config", "consumer.session.timeout.ms=50000")),
        ("users", "alice", ("--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]")),
        ("users", "alice", ("--add-config", "producer_byte_rate=1024")),
        ("users", "alice", ("--delete-config", "SCRAM-SHA-256")),
        ("users", "bob", ("--add-config", "SCRAM-SHA-512=[iterations=4096,password=y]")),
        ("clients", None, ("--add-config", "consumer_byte_rate=2048")),
    ):
        entity = ("--entity-default",) if name is None else ("--entity-name", name)
        kafka.tool(CONFIGS, *server, "--alter", "--entity-type", kind, *entity, *change)
    perf = ("--num-records", "10", "--record-size", "10", "--throughput", "-1")
    kafka.tool("org.apache.kafka.tools.ProducerPerformance", "--topic", "pay.ments", *perf, *server)


def main() -> None:
    for part in ("formatted", "life"):
        shutil.rmtree(GOLDEN / part, ignore_errors=True)
    with tempfile.TemporaryDirectory() as workshop:
        write_formatted(Path(workshop))
        write_life(Path(workshop))
    sys.stdout.write(f"written: {GOLDEN}\n")


if __name__ == "__main__":
    main()
