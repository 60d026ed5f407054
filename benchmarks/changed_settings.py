"""What of a broker under test is not its default: settings, as the broker itself tells them, and options of Java."""

from contextlib import closing
from pathlib import Path

from benchmarks.broker.raw import RawClient
from ottla.wire.types import DescribeClusterRequest, DescribeConfigsRequest

__all__ = ["changed_settings", "told"]

BROKER = 4
BUILT_IN = 5
IDENTITY = frozenset(
    (
        "advertised.listeners", "broker.id", "cluster.id", "controller.listener.names",
        "controller.quorum.bootstrap.servers", "controller.quorum.voters", "inter.broker.listener.name",
        "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "metadata.log.dir", "node.id",
        "process.roles",
    )
)  # fmt: skip
"""Where a broker is, and who it is: every process has values of its own."""


def changed_settings(port: int, pid: int) -> dict[str, str] | None:
    """By name, with the options of Java as one more. None if it does not tell: it wants a login, or is a controller."""
    try:
        with closing(RawClient(port)) as client:
            brokers = client.call(DescribeClusterRequest(), 0).brokers
            number = next((each.broker_id for each in brokers if each.port == port), None)
            if number is None:
                return None
            found = _described(client, number)
    except OSError:
        return None
    java = _java_options(pid)
    return found | ({"Java": java} if java else {})


def _described(client: RawClient, number: int) -> dict[str, str]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(BROKER, str(number), None)
    (result,) = client.call(DescribeConfigsRequest((resource,), include_synonyms=True), 4).results
    found = {}
    for each in result.configs:
        default = next((synonym.value for synonym in each.synonyms if synonym.source == BUILT_IN), None)
        if each.name not in IDENTITY and each.config_source != BUILT_IN and each.value != default:
            found[each.name] = "(not shown)" if each.value is None else each.value
    return dict(sorted(found.items()))


def _java_options(pid: int) -> str:
    """Of a process; without the values that are paths."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return ""
    return " ".join(word.partition("=/")[0] for word in words if word.startswith(("-Xm", "-XX:", "-server")))


def told(settings: dict[str, dict[str, str]]) -> list[str]:
    """A line for each broker, and one for each of its settings."""
    lines = []
    for broker, changed in settings.items():
        lines.append(f"{broker}: {'these settings are not defaults' if changed else 'all settings are defaults'}")
        lines += [f"  {name}={value}" for name, value in changed.items()]
    return lines
