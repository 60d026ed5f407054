"""Messages that carry a secret, and a look-out for it in whatever is printed."""

import base64
from typing import Any, NamedTuple

from ottla import wire
from ottla.explain.guess import Wrapping
from ottla.wire import keyed, types
from ottla.wire.batch import Compression, Record, build_batch
from ottla.wire.index import MESSAGES
from tests.unit.explain import packets as made

SECRET = b"Tr0ub4dor&3-Zx9!qWvKp7"
TEXT = SECRET.decode()
PIECE = 5
"""So many bytes of the secret in a row are a leak."""


class Case(NamedTuple):
    message: Any
    version: int

    @property
    def name(self) -> str:
        return type(self.message).__name__

    @property
    def body(self) -> bytes:
        return wire.encode(self.message, self.version)

    @property
    def frame(self) -> bytes:
        """With size and header, where it is a request or response."""
        from ottla.wire import frames

        if MESSAGES[self.name].kind == "request":
            return frames.write_request(self.message, self.version, correlation_id=9, client_id="me")
        return frames.write_response(self.message, self.version, correlation_id=9)

    @property
    def wrapping(self) -> Wrapping:
        kind = MESSAGES[self.name].kind
        return Wrapping(True, "request header" if kind == "request" else "response header")


def settings_request(name: str) -> Any:
    made_of = {
        "AlterConfigsRequest": types.AlterConfigsRequest,
        "IncrementalAlterConfigsRequest": types.IncrementalAlterConfigsRequest,
    }
    kind: Any = made_of[name]
    extra = {"config_operation": 0} if name.startswith("Incremental") else {}
    sensitive = kind.AlterableConfig(name="listener.name.sasl.ssl.keystore.password", value=TEXT, **extra)
    plain = kind.AlterableConfig(name="log.retention.ms", value="60000", **extra)
    resource = kind.AlterConfigsResource(resource_type=4, resource_name="1", configs=(sensitive, plain))
    return kind(resources=(resource,))


def describe_configs() -> types.DescribeConfigsResponse:
    kind = types.DescribeConfigsResponse
    synonym = kind.DescribeConfigsSynonym(name="sasl.jaas.config", value=TEXT, source=4)
    flagged = kind.DescribeConfigsResourceResult(name="plugin.setting", value=TEXT, is_sensitive=True)
    named = kind.DescribeConfigsResourceResult(name="sasl.jaas.config", value=TEXT, synonyms=(synonym,))
    plain = kind.DescribeConfigsResourceResult(name="log.dirs", value="/data")
    return kind(results=(kind.DescribeConfigsResult(configs=(flagged, named, plain)),))


def create_topics() -> types.CreateTopicsRequest:
    kind = types.CreateTopicsRequest
    setting = kind.CreatableTopicConfig(name="my.plugin.secret", value=TEXT)
    return kind(topics=(kind.CreatableTopic(name="orders", configs=(setting,)),))


def created_topics() -> types.CreateTopicsResponse:
    kind = types.CreateTopicsResponse
    setting = kind.CreatableTopicConfigs(name="my.plugin.setting", value=TEXT, is_sensitive=True)
    return kind(topics=(kind.CreatableTopicResult(name="orders", configs=(setting,)),))


def alter_scram() -> types.AlterUserScramCredentialsRequest:
    kind = types.AlterUserScramCredentialsRequest
    return kind(upsertions=(kind.ScramCredentialUpsertion("alice", 1, 4096, SECRET, SECRET),))


def described_tokens() -> types.DescribeDelegationTokenResponse:
    kind = types.DescribeDelegationTokenResponse
    return kind(tokens=(kind.DescribedDelegationToken(token_id="id-1", hmac=SECRET),))


def scram_record() -> bytes:
    record = types.UserScramCredentialRecord("alice", 1, SECRET, SECRET, SECRET, 4096)
    return keyed.encode_framed(record, 0)


def config_record() -> bytes:
    record = types.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=TEXT)
    return keyed.encode_framed(record, 0)


def batches(compression: Compression) -> bytes:
    records = [Record(0, 0, None, scram_record()), Record(1, 0, None, config_record())]
    return build_batch(records, compression=compression)


def fetched(compression: Compression, topic_id: bytes) -> types.FetchResponse:
    kind = types.FetchResponse
    partition = kind.PartitionData(records=batches(compression))
    return kind(responses=(kind.FetchableTopicResponse(topic_id=topic_id, partitions=(partition,)),))


def snapshot(position: int) -> types.FetchSnapshotResponse:
    kind = types.FetchSnapshotResponse
    piece = batches(Compression.NONE)[position:]
    partition = kind.PartitionSnapshot(position=position, size=1_000, unaligned_records=piece)
    return kind(topics=(kind.TopicSnapshot(name="__cluster_metadata", partitions=(partition,)),))


def envelope() -> types.EnvelopeRequest:
    inner = Case(settings_request("IncrementalAlterConfigsRequest"), 1).frame[4:]
    return types.EnvelopeRequest(request_data=inner, client_host_address=b"\x0a\0\0\1", request_principal=b"\0\0")


METADATA_ID = bytes(15) + b"\x01"
CASES = [
    Case(types.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + SECRET), 2),
    Case(types.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + SECRET), 0),
    Case(types.SaslAuthenticateResponse(auth_bytes=SECRET), 2),
    Case(alter_scram(), 0),
    Case(types.CreateDelegationTokenResponse(token_id="id-1", hmac=SECRET), 3),
    Case(types.CreateDelegationTokenResponse(token_id="id-1", hmac=SECRET), 1),
    Case(types.RenewDelegationTokenRequest(hmac=SECRET), 2),
    Case(types.ExpireDelegationTokenRequest(hmac=SECRET), 2),
    Case(described_tokens(), 3),
    Case(settings_request("AlterConfigsRequest"), 2),
    Case(settings_request("IncrementalAlterConfigsRequest"), 1),
    Case(describe_configs(), 4),
    Case(create_topics(), 7),
    Case(created_topics(), 7),
    Case(envelope(), 0),
    Case(types.EnvelopeResponse(response_data=b"\0\0\0\1" + SECRET), 0),
    Case(types.SaslAuthenticateRequest(auth_bytes=b"", unknown_tags={5: SECRET}), 2),
    *(Case(fetched(compression, METADATA_ID), 17) for compression in (Compression.NONE, Compression.ZSTD)),
    Case(fetched(Compression.NONE, made.topic_id("unknown")), 17),
    Case(snapshot(0), 1),
    Case(snapshot(70), 1),
]


def leaks(output: str) -> list[str]:
    """Pieces of the secret that stand in the output: as text, as hex of any spacing, or in base64."""
    squeezed = "".join(char for char in output.lower() if char in "0123456789abcdef")
    found = []
    for at in range(len(SECRET) - PIECE + 1):
        piece = SECRET[at : at + PIECE]
        if piece.decode() in output:
            found.append(piece.decode())
        if piece.hex() in squeezed:
            found.append(piece.hex())
    for at in range(3):  # whatever the alignment, some run of whole triples shows
        triples = SECRET[at : at + (len(SECRET) - at) // 3 * 3]
        text = base64.b64encode(triples).decode()
        found += [text[i : i + 8] for i in range(0, len(text) - 8, 4) if text[i : i + 8] in output]
    return found
