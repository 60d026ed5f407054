"""What requests mean to the audit log: refusals, and changes of rights, users, tokens, settings, topics and groups.

A refusal is told if the answer shows it. That somebody does not see all topics or groups in a list is no refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from ottla.broker.controller.forwarding import FORWARDABLE
from ottla.broker.network.dispatch import Api
from ottla.broker.network.logins import Tell, count_last
from ottla.broker.network.request import Denial, Request
from ottla.core.access.acls import Acl
from ottla.core.metadata.config_rules import broker_key
from ottla.core.metadata.image import BROKER
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode

__all__ = ["AuditEvents", "denial_fields"]

_Event = tuple[str, dict[str, object]]

_REFUSALS: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
_DENIALS_MAX: Final = 20
"""Lines about one request."""
_BY_CONTROLLER: Final[dict[str, object]] = {"rule": "decided by the controller of another node"}


class AuditEvents:
    """Looks at every request and its answer; few of them mean anything."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.refused: Counter[str] = Counter()
        """API -> requests with something that their principals may not do."""
        self._refused_by_principal: Counter[tuple[str, str]] = Counter()

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None:  # noqa: ANN401
        denials = getattr(request, "denials", ())
        if (denials or api.key in FORWARDABLE) and _has_refusal(answer):
            self.refused[api.name] += 1
            count_last(self._refused_by_principal, (request.principal, api.name))
            for said in [denial_fields(each) for each in _missing(denials)[:_DENIALS_MAX]] or [_BY_CONTROLLER]:
                self._tell("authz.denied", {**_who(request, api.name), **said})
        find = _EVENTS.get(api.key)
        if find is not None and isinstance(answer, msgspec.Struct):
            for event, fields in find(request, answer):
                self._tell(event, {**_who(request, api.name), **fields})

    def allowed(self, request: Request, operation: Operation, resource_type: ResourceType, resource_name: str) -> None:
        api_name = type(request.body).__name__.removesuffix("Request")
        said = {"op": operation.name, "resource": _resource(resource_type, resource_name)}
        self._tell("authz.allowed", {**_who(request, api_name), **said})

    def view(self) -> list[dict[str, object]]:
        """Refused requests for the inspect listener."""
        return [
            {"principal": principal, "api": name, "count": count}
            for (principal, name), count in self._refused_by_principal.items()
        ]

    def samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        for name, count in sorted(self.refused.items()):
            yield "ottla_refused_requests_total", {"request": name}, count


def _who(request: Request, api_name: str) -> dict[str, object]:
    peer = request.connection.peer
    return {
        "principal": request.principal,
        "host": peer.host,
        "listener": peer.listener,
        "api": api_name,
        "v": request.version,
        "client_id": request.client_id,
        "corr": request.correlation_id,
    }


def _missing(denials: Sequence[Denial]) -> list[Denial]:
    """Rights that would have helped. The same right to the cluster is not needed, where it stands for all topics."""
    of_topics = {each.operation for each in denials if each.resource_type is ResourceType.TOPIC}
    return [
        each for each in denials if each.resource_type is not ResourceType.CLUSTER or each.operation not in of_topics
    ]


def denial_fields(denial: Denial) -> dict[str, object]:
    """What the audit log says about a right that somebody does not have."""
    resource = _resource(denial.resource_type, denial.resource_name)
    return {"op": denial.operation.name, "resource": resource, "rule": denial.rule}


def _resource(resource_type: ResourceType, name: str) -> str:
    return f"{resource_type.name.title()}:{name}"


def _has_refusal(value: object) -> bool:
    """Whether an answer has an error, at any level, that tells of missing rights."""
    if isinstance(value, tuple):
        return any(_has_refusal(each) for each in value)
    if not isinstance(value, msgspec.Struct):
        return False
    for name in value.__struct_fields__:
        found = getattr(value, name)
        if found in _REFUSALS if name.endswith("error_code") else _has_refusal(found):
            return True
    return False


# --- changes ----------------------------------------------------------------------------------------------------------


def _acls_added(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401 - the response of the API
    for entry, result in zip(request.body.creations, answer.results, strict=False):
        if not result.error_code:
            yield "acl.added", {"rule": str(Acl.wanted(entry))}


def _acls_removed(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    for result in answer.filter_results:
        for each in result.matching_acls:
            yield "acl.removed", {"rule": str(Acl.of(each))}


def _users_changed(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    deleted = {each.name for each in request.body.deletions}
    for each in answer.results:
        if not each.error_code:
            yield "scram.changed", {"user": each.user, "change": "removed" if each.user in deleted else "set"}


def _token_created(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    if not answer.error_code:
        yield "token.created", {"token": answer.token_id, "owner": f"{answer.principal_type}:{answer.principal_name}"}


def _token_renewed(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    if not answer.error_code:
        yield "token.renewed", {"expires_at_ms": answer.expiry_timestamp_ms}


def _token_expired(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    if not answer.error_code:
        yield "token.expired", {"expires_at_ms": answer.expiry_timestamp_ms}


def _configs_changed(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    if request.body.validate_only:
        return
    former = getattr(request, "former_configs", {})
    for resource, result in zip(request.body.resources, answer.responses, strict=False):
        for each in () if result.error_code else resource.configs:
            at = (resource.resource_type, resource.resource_name, each.name)
            is_secret = resource.resource_type == BROKER and _is_secret(each.name)
            values = {} if is_secret else {"old": former.get(at), "new": each.value}
            yield "config.changed", {"resource": f"{_kind(at[0])}:{at[1]}", "key": each.name, **values}


def _is_secret(name: str) -> bool:
    """An unknown setting could be anything, so it is treated as a password."""
    key = broker_key(name)
    return key is None or key.is_sensitive


def _kind(resource_type: int) -> str:
    return {2: "Topic", 4: "Broker", 8: "BrokerLogger", 16: "ClientMetrics", 32: "Group"}.get(resource_type, "Unknown")


def _topics_deleted(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    for each in answer.responses:
        if not each.error_code:
            yield "topic.deleted", {"resource": f"Topic:{each.name}"}


def _groups_deleted(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    for each in answer.results:
        if not each.error_code:
            yield "group.deleted", {"resource": f"Group:{each.group_id}"}


def _group_reset(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    if not getattr(answer, "error_code", 0):
        yield "group.reset", {"resource": f"Group:{request.body.group_id}"}


def _offsets_committed(request: Request, answer: Any) -> Iterator[_Event]:  # noqa: ANN401
    """Offsets that no member has committed are those of an administrator, or of a consumer without a group."""
    body = request.body
    is_reset = body.generation_id_or_member_epoch < 0 and not body.member_id
    if is_reset and not any(each.error_code for topic in answer.topics for each in topic.partitions):
        yield from _group_reset(request, answer)


_EVENTS: Final[dict[int, Callable[[Request, Any], Iterator[_Event]]]] = {
    8: _offsets_committed,
    20: _topics_deleted,
    30: _acls_added,
    31: _acls_removed,
    33: _configs_changed,
    38: _token_created,
    39: _token_renewed,
    40: _token_expired,
    42: _groups_deleted,
    44: _configs_changed,
    47: _group_reset,
    51: _users_changed,
    91: _group_reset,
    92: _group_reset,
}
