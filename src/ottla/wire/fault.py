"""The error of bytes that cannot be decoded and of values that cannot be encoded."""

from __future__ import annotations


class WireError(ValueError):
    """Bytes that are not a message, or a value that no message can carry.

    `path` names the field, from the message down (``FetchResponse.Responses[0].TopicId``), `byte_offset` is the
    position of the error in the input (in encoding: in the output), or None if there is none, `reason` says what is
    wrong.
    """

    def __init__(self, path: str, byte_offset: int | None, reason: str) -> None:
        where = path if byte_offset is None else f"{path} at byte {byte_offset}"
        super().__init__(f"{where}: {reason}")
        self.path = path
        self.byte_offset = byte_offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[WireError], tuple[str, int | None, str]]:
        # ValueError's own pickling would pass the joined text only; Spark workers send errors by pickle.
        return (WireError, (self.path, self.byte_offset, self.reason))
