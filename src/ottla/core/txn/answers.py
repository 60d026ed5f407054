"""Answers that carry an error, in the form that each version understands."""

from __future__ import annotations

from typing import Final

from ottla.wire.errors import ErrorCode
from ottla.wire.types.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["fenced_error", "refusal"]

_FENCED_FROM: Final = {InitProducerIdRequest: 4, EndTxnRequest: 2}


def fenced_error(code: int, api_version: int, known_from: int) -> int:
    """Older clients do not know PRODUCER_FENCED, and take INVALID_PRODUCER_EPOCH as the same."""
    if code == ErrorCode.PRODUCER_FENCED and api_version < known_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def refusal(
    request: InitProducerIdRequest | EndTxnRequest, code: int, api_version: int
) -> InitProducerIdResponse | EndTxnResponse:
    code = fenced_error(code, api_version, _FENCED_FROM[type(request)])
    if isinstance(request, EndTxnRequest):
        return EndTxnResponse(error_code=code)
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
