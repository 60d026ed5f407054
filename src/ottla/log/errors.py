"""The errors of the log.

Each exception has the error code of the protocol. Errors about single records list these, so that the producer knows
which ones to correct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.wire.errors import ErrorCode

__all__ = [
    "CorruptMessageError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidTimestampError",
    "InvalidTxnStateError",
    "LogError",
    "MessageTooLargeError",
    "OffsetOutOfRangeError",
    "OffsetsOutOfOrderError",
    "OutOfOrderSequenceError",
    "RecordError",
    "RecordListTooLargeError",
    "StorageError",
    "TransactionCoordinatorFencedError",
    "UnexpectedAppendOffsetError",
    "UnsupportedCompressionTypeError",
]


class RecordError(NamedTuple):
    """What is wrong with one record of a produced batch."""

    batch_index: int
    message: str


class LogError(Exception):
    """The log refused an operation; nothing has changed."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR

    @property
    def record_errors(self) -> Sequence[RecordError]:
        return ()


class StorageError(LogError):
    """The disk failed. The whole log directory is offline from now on, until the node has been restarted."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRangeError(LogError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessageError(LogError):
    code = ErrorCode.CORRUPT_MESSAGE


class MessageTooLargeError(LogError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLargeError(LogError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE


class UnsupportedCompressionTypeError(LogError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class _RecordsError(LogError):
    def __init__(self, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self._record_errors = record_errors

    @property
    def record_errors(self) -> Sequence[RecordError]:
        return self._record_errors


class InvalidRecordError(_RecordsError):
    code = ErrorCode.INVALID_RECORD


class InvalidTimestampError(_RecordsError):
    code = ErrorCode.INVALID_TIMESTAMP


class OutOfOrderSequenceError(LogError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(LogError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(LogError):
    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFencedError(LogError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class OffsetsOutOfOrderError(LogError):
    """A leader sent batches whose offsets do not rise. No client ever sees this."""


class UnexpectedAppendOffsetError(LogError):
    """A leader sent batches that begin below the end of this log. No client ever sees this."""
