"""Every error code of Kafka's protocol: its name, whether a retry may help, what it means and what to do.

Tests compare the names, codes and flags with Kafka's own table. The texts are in errors.txt, which is read when the
first text is needed: a broker that only writes codes never loads them.
"""

from enum import IntEnum
from functools import cache

_RETRIABLE = True


class ErrorCode(IntEnum):
    """A Kafka error. It is an int, the number on the wire, so it can be used in any error_code field."""

    retriable: bool
    """Whether Kafka's clients may send the same request again. Other errors may have a remedy, too."""
    exception: str | None
    """The class that Java clients raise for it, in org.apache.kafka.common.errors; None for NONE."""

    def __new__(cls, code: int, exception: str | None = None, retriable: bool = False) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.exception = exception
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "UnknownServerException"
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1, "OffsetOutOfRangeException"
    CORRUPT_MESSAGE = 2, "CorruptRecordException", _RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, "UnknownTopicOrPartitionException", _RETRIABLE
    INVALID_FETCH_SIZE = 4, "InvalidFetchSizeException"
    LEADER_NOT_AVAILABLE = 5, "LeaderNotAvailableException", _RETRIABLE
    NOT_LEADER_OR_FOLLOWER = 6, "NotLeaderOrFollowerException", _RETRIABLE
    REQUEST_TIMED_OUT = 7, "TimeoutException", _RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "BrokerNotAvailableException"
    REPLICA_NOT_AVAILABLE = 9, "ReplicaNotAvailableException", _RETRIABLE
    MESSAGE_TOO_LARGE = 10, "RecordTooLargeException"
    STALE_CONTROLLER_EPOCH = 11, "ControllerMovedException"
    OFFSET_METADATA_TOO_LARGE = 12, "OffsetMetadataTooLarge"
    NETWORK_EXCEPTION = 13, "NetworkException", _RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, "CoordinatorLoadInProgressException", _RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "CoordinatorNotAvailableException", _RETRIABLE
    NOT_COORDINATOR = 16, "NotCoordinatorException", _RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, "InvalidTopicException"
    RECORD_LIST_TOO_LARGE = 18, "RecordBatchTooLargeException"
    NOT_ENOUGH_REPLICAS = 19, "NotEnoughReplicasException", _RETRIABLE
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "NotEnoughReplicasAfterAppendException", _RETRIABLE
    INVALID_REQUIRED_ACKS = 21, "InvalidRequiredAcksException"
    ILLEGAL_GENERATION = 22, "IllegalGenerationException"
    INCONSISTENT_GROUP_PROTOCOL = 23, "InconsistentGroupProtocolException"
    INVALID_GROUP_ID = 24, "InvalidGroupIdException"
    UNKNOWN_MEMBER_ID = 25, "UnknownMemberIdException"
    INVALID_SESSION_TIMEOUT = 26, "InvalidSessionTimeoutException"
    REBALANCE_IN_PROGRESS = 27, "RebalanceInProgressException"
    INVALID_COMMIT_OFFSET_SIZE = 28, "InvalidCommitOffsetSizeException"
    TOPIC_AUTHORIZATION_FAILED = 29, "TopicAuthorizationException"
    GROUP_AUTHORIZATION_FAILED = 30, "GroupAuthorizationException"
    CLUSTER_AUTHORIZATION_FAILED = 31, "ClusterAuthorizationException"
    INVALID_TIMESTAMP = 32, "InvalidTimestampException"
    UNSUPPORTED_SASL_MECHANISM = 33, "UnsupportedSaslMechanismException"
    ILLEGAL_SASL_STATE = 34, "IllegalSaslStateException"
    UNSUPPORTED_VERSION = 35, "UnsupportedVersionException"
    TOPIC_ALREADY_EXISTS = 36, "TopicExistsException"
    INVALID_PARTITIONS = 37, "InvalidPartitionsException"
    INVALID_REPLICATION_FACTOR = 38, "InvalidReplicationFactorException"
    INVALID_REPLICA_ASSIGNMENT = 39, "InvalidReplicaAssignmentException"
    INVALID_CONFIG = 40, "InvalidConfigurationException"
    NOT_CONTROLLER = 41, "NotControllerException", _RETRIABLE
    INVALID_REQUEST = 42, "InvalidRequestException"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "UnsupportedForMessageFormatException"
    POLICY_VIOLATION = 44, "PolicyViolationException"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "OutOfOrderSequenceException"
    DUPLICATE_SEQUENCE_NUMBER = 46, "DuplicateSequenceException"
    INVALID_PRODUCER_EPOCH = 47, "InvalidProducerEpochException"
    INVALID_TXN_STATE = 48, "InvalidTxnStateException"
    INVALID_PRODUCER_ID_MAPPING = 49, "InvalidPidMappingException"
    INVALID_TRANSACTION_TIMEOUT = 50, "InvalidTxnTimeoutException"
    CONCURRENT_TRANSACTIONS = 51, "ConcurrentTransactionsException", _RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, "TransactionCoordinatorFencedException"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "TransactionalIdAuthorizationException"
    SECURITY_DISABLED = 54, "SecurityDisabledException"
    OPERATION_NOT_ATTEMPTED = 55, "OperationNotAttemptedException"
    KAFKA_STORAGE_ERROR = 56, "KafkaStorageException", _RETRIABLE
    LOG_DIR_NOT_FOUND = 57, "LogDirNotFoundException"
    SASL_AUTHENTICATION_FAILED = 58, "SaslAuthenticationException"
    UNKNOWN_PRODUCER_ID = 59, "UnknownProducerIdException"
    REASSIGNMENT_IN_PROGRESS = 60, "ReassignmentInProgressException"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "DelegationTokenDisabledException"
    DELEGATION_TOKEN_NOT_FOUND = 62, "DelegationTokenNotFoundException"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "DelegationTokenOwnerMismatchException"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "UnsupportedByAuthenticationException"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "DelegationTokenAuthorizationException"
    DELEGATION_TOKEN_EXPIRED = 66, "DelegationTokenExpiredException"
    INVALID_PRINCIPAL_TYPE = 67, "InvalidPrincipalTypeException"
    NON_EMPTY_GROUP = 68, "GroupNotEmptyException"
    GROUP_ID_NOT_FOUND = 69, "GroupIdNotFoundException"
    FETCH_SESSION_ID_NOT_FOUND = 70, "FetchSessionIdNotFoundException", _RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, "InvalidFetchSessionEpochException", _RETRIABLE
    LISTENER_NOT_FOUND = 72, "ListenerNotFoundException", _RETRIABLE
    TOPIC_DELETION_DISABLED = 73, "TopicDeletionDisabledException"
    FENCED_LEADER_EPOCH = 74, "FencedLeaderEpochException", _RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "UnknownLeaderEpochException", _RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "UnsupportedCompressionTypeException"
    STALE_BROKER_EPOCH = 77, "StaleBrokerEpochException"
    OFFSET_NOT_AVAILABLE = 78, "OffsetNotAvailableException", _RETRIABLE
    MEMBER_ID_REQUIRED = 79, "MemberIdRequiredException"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "PreferredLeaderNotAvailableException", _RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "GroupMaxSizeReachedException"
    FENCED_INSTANCE_ID = 82, "FencedInstanceIdException"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "EligibleLeadersNotAvailableException", _RETRIABLE
    ELECTION_NOT_NEEDED = 84, "ElectionNotNeededException", _RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "NoReassignmentInProgressException"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "GroupSubscribedToTopicException"
    INVALID_RECORD = 87, "InvalidRecordException"
    UNSTABLE_OFFSET_COMMIT = 88, "UnstableOffsetCommitException", _RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, "ThrottlingQuotaExceededException", _RETRIABLE
    PRODUCER_FENCED = 90, "ProducerFencedException"
    RESOURCE_NOT_FOUND = 91, "ResourceNotFoundException"
    DUPLICATE_RESOURCE = 92, "DuplicateResourceException"
    UNACCEPTABLE_CREDENTIAL = 93, "UnacceptableCredentialException"
    INCONSISTENT_VOTER_SET = 94, "InconsistentVoterSetException"
    INVALID_UPDATE_VERSION = 95, "InvalidUpdateVersionException"
    FEATURE_UPDATE_FAILED = 96, "FeatureUpdateFailedException"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "PrincipalDeserializationException"
    SNAPSHOT_NOT_FOUND = 98, "SnapshotNotFoundException"
    POSITION_OUT_OF_RANGE = 99, "PositionOutOfRangeException"
    UNKNOWN_TOPIC_ID = 100, "UnknownTopicIdException", _RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "DuplicateBrokerRegistrationException"
    BROKER_ID_NOT_REGISTERED = 102, "BrokerIdNotRegisteredException"
    INCONSISTENT_TOPIC_ID = 103, "InconsistentTopicIdException", _RETRIABLE
    INCONSISTENT_CLUSTER_ID = 104, "InconsistentClusterIdException"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "TransactionalIdNotFoundException"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "FetchSessionTopicIdException", _RETRIABLE
    INELIGIBLE_REPLICA = 107, "IneligibleReplicaException"
    NEW_LEADER_ELECTED = 108, "NewLeaderElectedException"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "OffsetMovedToTieredStorageException"
    FENCED_MEMBER_EPOCH = 110, "FencedMemberEpochException"
    UNRELEASED_INSTANCE_ID = 111, "UnreleasedInstanceIdException"
    UNSUPPORTED_ASSIGNOR = 112, "UnsupportedAssignorException"
    STALE_MEMBER_EPOCH = 113, "StaleMemberEpochException"
    MISMATCHED_ENDPOINT_TYPE = 114, "MismatchedEndpointTypeException"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "UnsupportedEndpointTypeException"
    UNKNOWN_CONTROLLER_ID = 116, "UnknownControllerIdException"
    UNKNOWN_SUBSCRIPTION_ID = 117, "UnknownSubscriptionIdException"
    TELEMETRY_TOO_LARGE = 118, "TelemetryTooLargeException"
    INVALID_REGISTRATION = 119, "InvalidRegistrationException"
    TRANSACTION_ABORTABLE = 120, "TransactionAbortableException"
    INVALID_RECORD_STATE = 121, "InvalidRecordStateException"
    SHARE_SESSION_NOT_FOUND = 122, "ShareSessionNotFoundException", _RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "InvalidShareSessionEpochException", _RETRIABLE
    FENCED_STATE_EPOCH = 124, "FencedStateEpochException"
    INVALID_VOTER_KEY = 125, "InvalidVoterKeyException"
    DUPLICATE_VOTER = 126, "DuplicateVoterException"
    VOTER_NOT_FOUND = 127, "VoterNotFoundException"
    INVALID_REGULAR_EXPRESSION = 128, "InvalidRegularExpression"
    REBOOTSTRAP_REQUIRED = 129, "RebootstrapRequiredException"
    STREAMS_INVALID_TOPOLOGY = 130, "StreamsInvalidTopologyException"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "StreamsInvalidTopologyEpochException"
    STREAMS_TOPOLOGY_FENCED = 132, "StreamsTopologyFencedException"
    SHARE_SESSION_LIMIT_REACHED = 133, "ShareSessionLimitReachedException", _RETRIABLE
    GROUP_DELETION_FAILED = 134, "GroupDeletionFailedException"
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, "StreamsTopologyDescriptionUpdateFailedException"
    CONTROLLER_ID_NOT_REGISTERED = 136, "ControllerIdNotRegisteredException"

    @property
    def meaning(self) -> str:
        """What has happened, in one or two sentences."""
        return _texts()[self.name][0]

    @property
    def remedy(self) -> str:
        """What the client or its operator can do about it, in one or two sentences."""
        return _texts()[self.name][1]

    @classmethod
    def _missing_(cls, value: object) -> "ErrorCode":
        message = f"no Kafka error has the code {value!r}"
        if isinstance(value, int):
            nearest = min(cls, key=lambda error: abs(error - value))
            message += f"; the nearest is {nearest:d} ({nearest.name})"
        raise ValueError(message)


def by_code(code: int) -> ErrorCode:
    """The error with this code. ValueError, naming the nearest one, if Kafka has none."""
    return ErrorCode(code)


def by_name(name: str) -> ErrorCode:
    """The error with this name, such as NOT_COORDINATOR. ValueError, naming the nearest one, if Kafka has none."""
    error = ErrorCode.__members__.get(name)
    if error is None:
        raise ValueError(f"no Kafka error has the name {name!r}; the nearest is {_nearest_name(name)}")
    return error


def _nearest_name(name: str) -> str:
    from difflib import get_close_matches

    return get_close_matches(name.upper(), ErrorCode.__members__, n=1, cutoff=0.0)[0]


@cache
def _texts() -> dict[str, tuple[str, str]]:
    from pkgutil import get_data

    data = get_data(__name__, "errors.txt")
    assert data is not None, "errors.txt is not beside errors.py: the package is incomplete"
    return parse_texts(data.decode())


def parse_texts(text: str) -> dict[str, tuple[str, str]]:
    """Read errors.txt: blocks of a name, a line "means: ..." and a line "do: ...", with "--" before comments."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("--")]
    return {
        name: (means.removeprefix("means: "), do.removeprefix("do: "))
        for name, means, do in zip(lines[0::3], lines[1::3], lines[2::3], strict=True)
    }
