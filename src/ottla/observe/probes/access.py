"""Failed logins and refused requests, which only ottla brokers tell of, on their inspect listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.client.inspect_listener import access_url, inspect_addresses, read_json
from ottla.health.facts import Coverage, LoginFailures, Refusals
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, not_visible, probe_error, probe_result

__all__ = ["access_facts", "probe_access"]

_KINDS = (LoginFailures.kind, Refusals.kind)


async def probe_access(ctx: ProbeContext) -> list[ProbeResult]:
    addresses = await inspect_addresses(ctx.client)
    if not addresses:
        return [not_visible(kind, "needs an ottla broker with --inspect-port") for kind in _KINDS]
    results = [probe_result(kind, Coverage(what=kind, visible=True)) for kind in _KINDS]
    for address in addresses:
        try:
            answer = await read_json(ctx.client, access_url(address))
        except OSError as error:
            results.append(probe_error("access", address, f"{type(error).__name__}: {error}"))
        else:
            results += [probe_result(name, fact) for name, fact in access_facts(answer)]
    return results


def access_facts(answer: Mapping[str, Any]) -> Iterator[tuple[str, LoginFailures | Refusals]]:
    """Names and facts."""
    node = answer["node"]
    for each in answer["failed_logins"]:
        fact = LoginFailures(node=node, user=each["user"], address=each["address"], failed=each["count"])
        yield f"{fact.user}@{fact.address}@{node}", fact
    for each in answer["refused_requests"]:
        refused = Refusals(node=node, principal=each["principal"], api=each["api"], refused=each["count"])
        yield f"{refused.principal}@{refused.api}@{node}", refused
