"""A voter that the test plays: it listens, remembers what it is asked, and answers what it was told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from ottla.wire import frames, versions
from ottla.wire.types.api_versions import ApiVersionsResponse
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

__all__ = ["Answer", "Asked", "PlayedVoter", "Served", "leading"]

API_VERSIONS = 18
FETCH, VOTE, BEGIN, END, FETCH_SNAPSHOT, UPDATE_VOTER = 1, 52, 53, 54, 59, 82
NEWEST = {
    key: (versions(name)[0], versions(name)[-1])
    for key, name in {
        FETCH: "FetchRequest",
        API_VERSIONS: "ApiVersionsRequest",
        VOTE: "VoteRequest",
        BEGIN: "BeginQuorumEpochRequest",
        END: "EndQuorumEpochRequest",
        FETCH_SNAPSHOT: "FetchSnapshotRequest",
        UPDATE_VOTER: "UpdateRaftVoterRequest",
    }.items()
}


class Asked(NamedTuple):
    """A request that came in."""

    request: Any
    version: int
    earlier: tuple[Any, ...]
    """The requests before it."""


Answer = Callable[[Asked], Any]
"""The response to a request; None for none."""
Served = Mapping[int, tuple[int, int] | None]
"""The versions of an API, by its key; None where it is not served."""


def leading(node_id: int, epoch: int, high_watermark: int) -> Answer:
    """Answers as the leader of an epoch that has no news."""

    def answer(asked: Asked) -> Any:
        if isinstance(asked.request, UpdateRaftVoterRequest):
            return UpdateRaftVoterResponse(0, 0, UpdateRaftVoterResponse.CurrentLeader(node_id, epoch))
        if not isinstance(asked.request, FetchRequest):
            return None
        time.sleep(asked.request.max_wait_ms / 1000)
        kind = FetchResponse
        leader = kind.LeaderIdAndEpoch(node_id, epoch)
        partition = kind.PartitionData(0, 0, high_watermark, current_leader=leader, records=b"")
        (topic,) = asked.request.topics
        return kind(responses=(kind.FetchableTopicResponse(topic_id=topic.topic_id, partitions=(partition,)),))

    return answer


class PlayedVoter:
    """`served` are versions that it says it serves, where not all; `asked` is what it was asked, but for them."""

    def __init__(self, answer: Answer, served: Served = MappingProxyType({})) -> None:
        self.asked: list[Asked] = []
        self._answer = answer
        self._served = {key: span for key, span in {**NEWEST, **served}.items() if span is not None}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._is_closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        for each in (self._server, *self._connections):
            with suppress(OSError):  # the other end has closed it
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while size := stream.read(frames.SIZE_BYTES):
                content = stream.read(int.from_bytes(size, "big"))
                response, version, correlation_id = self._answered(content)
                if response is not None:
                    connection.sendall(frames.write_response(response, version, correlation_id=correlation_id))

    def _answered(self, content: bytes) -> tuple[Any, int, int]:
        _, version, header, body = frames.read_request(content)
        if header.request_api_key == API_VERSIONS:
            kind = ApiVersionsResponse
            keys = tuple(kind.ApiVersion(key, *span) for key, span in self._served.items())
            features = (kind.SupportedFeatureKey("kraft.version", 0, 1),)
            return kind(api_keys=keys, supported_features=features), version, header.correlation_id
        asked = Asked(body, version, tuple(each.request for each in self.asked))
        self.asked.append(asked)
        return self._answer(asked), version, header.correlation_id
