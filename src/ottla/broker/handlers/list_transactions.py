"""ListTransactions (66): the transactional ids that this node coordinates.

Versions 0 to 2. Filters: state and producer id; from 1 on age; from 2 on a pattern in RE2's syntax that must match the
whole id. Ids that the client may not describe are left out. The response lists unknown state names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.core.metadata.fault import Reject
from ottla.core.txn.messages import Listed, ListTransactions
from ottla.core.txn.states import TransactionState
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 66
VERSIONS: Final = (0, 2)

_PATTERN_BYTES_MAX: Final = 2 << 20
"""The memory limit of a compiled pattern."""


def handle(node: Transactions, request: Request) -> DelayedResponse:
    body: ListTransactionsRequest = request.body
    states = {name: TransactionState.of_name(name) for name in body.state_filters}
    asked = ListTransactions(
        states=frozenset(each for each in states.values() if each is not None) if states else None,
        producer_ids=frozenset(body.producer_id_filters),
        older_than_ms=body.duration_filter,
        matches=_matcher(body.transactional_id_pattern) if body.transactional_id_pattern else None,
    )
    unknown = tuple(name for name, state in states.items() if state is None)
    later = DelayedResponse()
    node.transactions.ask_all(
        request,
        asked,
        lambda answers: later.complete(_response(node, request, unknown, answers)),
        refuse=lambda code, message: code,
    )
    return later


def refuse(request: Request, code: int, message: str | None) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code)


def _response(
    node: Transactions, request: Request, unknown: tuple[str, ...], answers: list[list[Listed] | ErrorCode]
) -> ListTransactionsResponse:
    listed: list[Listed] = []
    for answer in answers:
        if isinstance(answer, ErrorCode):
            return refuse(request, answer, None)
        listed += answer
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=tuple(
            ListTransactionsResponseTransactionState(each.transactional_id, each.producer_id, each.state.shown)
            for each in listed
            if node.authorize(request, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id)
        ),
    )


def _matcher(pattern: str) -> Callable[[str], bool]:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES_MAX
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise Reject(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is not a valid regular expression: {error}"
        ) from None
    return lambda name: compiled.fullmatch(name) is not None
