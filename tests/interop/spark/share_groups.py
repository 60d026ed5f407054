"""Share groups for the tests: made to begin at the beginning, looked at from outside."""

from typing import Any

from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.share.offsets import describe_offsets
from tests.interop.spark.topics import new_name


class ShareGroup:
    def __init__(self, servers: str, name: str | None = None, **configs: object) -> None:
        self.name = name or new_name("group")
        self.servers = servers
        given = {"share_auto_offset_reset": "earliest", **configs}
        changes = [Change(Operation.SET, key.replace("_", "."), str(value)) for key, value in given.items()]
        with BlockingClient(servers) as client:
            client.call(alter, Resource(ResourceType.GROUP, self.name), changes)

    def lag(self) -> int:
        """What is still to be delivered or acknowledged."""
        with BlockingClient(self.servers) as client:
            found = client.call(describe_offsets, self.name)
        return sum(each.lag or 0 for each in found.values())

    def options(self, topic: str, **more: object) -> dict[str, str]:
        fixed = {"kafka.bootstrap.servers": self.servers, "group": self.name, "subscribe": topic}
        return {**fixed, **{name.replace("__", "."): str(value) for name, value in more.items()}}


def stream(spark: Any, options: dict[str, str]) -> Any:
    return spark.readStream.format("ottla-share").options(**options).load()
