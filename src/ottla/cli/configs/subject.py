"""The subject of a command: the resource or quota entity that TYPE and NAME mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.client.configs import Resource

DEFAULT: Final = "default"
QUOTA_KINDS: Final = {"user": "user", "client": "client-id", "ip": "ip"}
"""Type -> Kafka's name of the quota entity."""
TYPES: Final = ("topic", "broker", "group", "client-metrics", "broker-logger", *QUOTA_KINDS)

type_argument = click.argument("kind", metavar="TYPE", type=click.Choice(TYPES))
client_option = click.option("--client", metavar="NAME", help="With user: quotas for this client id of the user.")


class Subject(NamedTuple):
    """A resource or quota entity. `name` is None if none is given; `client` narrows a user's quotas."""

    kind: str
    name: str | None
    client: str | None = None

    @property
    def is_quota(self) -> bool:
        return self.kind in QUOTA_KINDS

    @property
    def resource(self) -> Resource:
        from ottla.client.configs import Resource, ResourceType

        if self.name is None:
            raise Failure(f"no {self.kind} is named", f"write its name after '{self.kind}'")
        is_default = self.kind == "broker" and self.name == DEFAULT
        return Resource(ResourceType[self.kind.upper().replace("-", "_")], "" if is_default else self.name)

    @property
    def entity(self) -> dict[str, str | None]:
        """The quota entity, in Kafka's terms."""
        if self.name is None:
            raise Failure(f"no {self.kind} given", f"write its name after '{self.kind}', or '{DEFAULT}'")
        entity = {QUOTA_KINDS[self.kind]: _name_or_default(self.name)}
        if self.client is not None:
            if self.kind != "user":
                raise Failure(f"--client goes with user, not with {self.kind}")
            entity["client-id"] = _name_or_default(self.client)
        return entity

    def __str__(self) -> str:
        text = f"{self.kind} {self.name}" if self.name else self.kind
        return text if self.client is None else f"{text}, client {self.client}"


def _name_or_default(name: str) -> str | None:
    return None if name == DEFAULT else name
