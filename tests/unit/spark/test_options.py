"""Options: names, values, and the one sentence that says what is wrong with them."""

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import duration_ms, options_of, read_options, redacted
from ottla.spark.topic.options import TopicOptions
from tests.unit.spark.fake_cluster import SERVERS, at, topic_options


def refusal(**given: str) -> str:
    with pytest.raises(OttlaSparkError) as raised:
        topic_options(**given)
    return str(raised.value)


def test_names_have_no_case_and_defaults_stand():
    options = topic_options(STARTINGOFFSETS="earliest", maxoffsetspertrigger="7")
    assert options.starting_offsets == "earliest"
    assert options.max_offsets_per_trigger == 7
    assert options.fail_on_data_loss
    assert (options.arrow_batch_rows, options.arrow_batch_bytes) == (50_000, 8 << 20)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("maxOffsetPerTrigger", "1", "unknown option maxOffsetPerTrigger: did you mean maxOffsetsPerTrigger?"),
        ("minPartitions", "0", "option minPartitions: '0' is not a positive integer"),
        ("minPartitions", "many", "option minPartitions: 'many' is not a positive integer"),
        ("includeHeaders", "yes", "option includeHeaders: 'yes' is neither true nor false"),
        ("startingOffsets", "first", "option startingOffsets: 'first' is not earliest, latest or JSON such as"),
        ("startingOffsets", "{", "option startingOffsets: it is not JSON"),
        ("startingOffsets", '{"t":{"0":-3}}', "option startingOffsets: topic t partition 0: -3 cannot be used"),
        ("startingOffsets", '{"t":{"x":1}}', "option startingOffsets: topic t partition x: 1 cannot be used"),
        ("startingOffsets", '{"t":{"0":1.5}}', "option startingOffsets: topic t partition 0: 1.5 cannot be used"),
        ("startingOffsets", '{"t":3}', "option startingOffsets: topic t has no object of partitions"),
        ("startingOffsetsByTimestamp", '{"t":{"0":-1}}', "option startingOffsetsByTimestamp: topic t partition 0"),
        ("startingOffsetsByTimestampStrategy", "skip", "option startingOffsetsByTimestampStrategy: 'skip' is not"),
        ("maxTriggerDelay", "soon", "option maxTriggerDelay: 'soon' is not a duration; write 15m or 30s"),
        ("isolationLevel", "committed", "option isolationLevel: 'committed' is not one of read_uncommitted"),
        ("kafka.auto.offset.reset", "latest", "option kafka.auto.offset.reset: use startingOffsets"),
        ("kafka.enable.auto.commit", "true", "option kafka.enable.auto.commit: offsets are kept in the checkpoint"),
        ("kafka.key.deserializer", "X", "option kafka.key.deserializer: keys are binary"),
        (
            "kafka.sasl.login.callback.handler.class",
            "X",
            "option kafka.sasl.login.callback.handler.class: it names Java",
        ),
        ("kafka.request.timeout.ms", "soon", "option kafka.request.timeout.ms is 'soon', which is not a number"),
        ("kafka.bootstrap.servers", "nowhere", "option kafka.bootstrap.servers: 'nowhere' is not an address"),
        ("kafka.security.protocol", "SASL_PLAINTEXT", "option kafka.sasl.mechanism is not set"),
        ("kafka.fetch.min.bytes", "many", "option kafka.fetch.min.bytes: 'many' is not a positive integer"),
        ("kafka.isolation.level", "some", "option kafka.isolation.level: 'some' is not one of read_uncommitted"),
        ("assign", '{"t":[0]}', "options subscribe, subscribePattern, assign: give exactly one"),
        ("subscribe", "a,__ottla", "topic __ottla cannot be read"),
    ],
)
def test_a_bad_option_is_named(name: str, value: str, text: str):
    assert refusal(**{name: value}).startswith(text)


def test_one_way_to_choose_topics_is_needed():
    with pytest.raises(OttlaSparkError, match="give exactly one"):
        read_options(TopicOptions, SERVERS)
    with pytest.raises(OttlaSparkError, match=r"option kafka\.bootstrap\.servers: it is required"):
        read_options(TopicOptions, {"subscribe": "t"})


def test_topics_may_be_listed_matched_or_assigned():
    assert topic_options(subscribe=" a, b ,").subscribe == ("a", "b")
    assert read_options(TopicOptions, {**SERVERS, "assign": '{"t":[1,0,1]}'}).assign == (at(1), at(0))
    with pytest.raises(OttlaSparkError, match=r"option subscribePattern: .* is not an RE2 pattern"):
        read_options(TopicOptions, {**SERVERS, "subscribePattern": "(?=x)"})


def test_unknown_options_may_be_passed_over():
    assert topic_options(ignoreUnknownOptions="true", whatever="1").subscribe == ("t",)


def test_unknown_settings_of_kafka_are_warned_of(caplog: pytest.LogCaptureFixture):
    topic_options(**{"kafka.fetch.mim.bytes": "1"})
    assert "option kafka.fetch.mim.bytes is unknown and ignored; did you mean kafka.fetch.min.bytes?" in (caplog.text)


def test_a_time_goes_before_times_of_partitions_and_those_before_offsets():
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":5}}'}
    assert topic_options(**given).starting(is_stream=True).where == {at(0): 5}
    assert topic_options(**given, startingTimestamp="9").starting(is_stream=True).timestamp == 9


def test_where_queries_begin_and_end_by_themselves():
    options = topic_options()
    assert options.starting(is_stream=True).where == "latest"
    assert options.starting(is_stream=False).where == "earliest"
    assert options.ending().where == "latest"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffsets": "latest"}, "option startingOffsets: a batch query cannot start at the latest offset"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "option startingOffsets: a batch query cannot start at the latest"),
        ({"endingOffsets": "earliest"}, "option endingOffsets: a batch query cannot end at the earliest offset"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "option endingOffsets: a batch query cannot end at the earliest"),
    ],
)
def test_a_batch_query_cannot_begin_at_the_end(given: dict[str, str], text: str):
    with pytest.raises(OttlaSparkError, match=text):
        topic_options(**given).for_batch()


def test_a_stream_has_no_end():
    for name, value in {"endingOffsets": "latest", "endingTimestamp": "1"}.items():
        with pytest.raises(OttlaSparkError, match=f"option {name}: a stream has no end"):
            topic_options(**{name: value}).for_stream()


@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({}, 1_000),
        ({"minRecordsPerPartition": "7"}, 7),
        ({"minPartitions": "8"}, 1),
        ({"maxRecordsPerPartition": "8"}, 1),
        ({"minPartitions": "8", "minRecordsPerPartition": "7"}, 7),
    ],
)
def test_small_partitions_are_joined_unless_tasks_are_split(given: dict[str, str], least: int):
    assert topic_options(**given).joined_records == least


def test_joined_tasks_are_not_larger_than_split_ones():
    text = refusal(minRecordsPerPartition="5", maxRecordsPerPartition="4")
    assert text == "option minRecordsPerPartition: 5 is more than maxRecordsPerPartition, 4"


def test_less_than_the_least_is_more_than_the_most():
    text = refusal(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="5")
    assert text == "option minOffsetsPerTrigger: 10 is more than maxOffsetsPerTrigger, 5"


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("30 s", 30_000), ("1 hour 30 minutes", 5_400_000), ("250", 250), ("2min", 120_000), ("7ms", 7)],
)
def test_durations(text: str, ms: int):
    assert duration_ms(text) == ms


def test_isolation_has_two_names():
    assert topic_options().isolation == "read_uncommitted"
    assert topic_options(**{"kafka.isolation.level": "READ_COMMITTED"}).isolation == "read_committed"
    assert topic_options(isolationLevel="read_committed").isolation == "read_committed"


def test_what_a_task_asks_for_can_be_set():
    given = {"kafka.fetch.min.bytes": "9", "kafka.max.partition.fetch.bytes": "77", "kafka.client.rack": "b"}
    how = topic_options(**given, **{"kafkaConsumer.pollTimeoutMs": "5"}).read_options(None)
    assert (how.min_bytes, how.partition_max_bytes, how.rack_id, how.stall_timeout_ms) == (9, 77, "b", 5)
    assert how.max_bytes == 32 << 20


def test_nothing_that_opens_doors_is_shown():
    secret = {
        "kafka.sasl.jaas.config": "PlainLoginModule required password=pencil;",
        "kafka.sasl.password": "pencil",
        "kafka.ssl.key.password": "pencil",
    }
    shown = redacted({**secret, "subscribe": "t"})
    assert "pencil" not in str(shown)
    assert shown["subscribe"] == "t"
    assert "pencil" not in repr(topic_options(**secret))


def test_clients_call_themselves_as_those_of_sparks_own_source():
    assert topic_options().client_settings()["client_id"] == "spark-kafka-source"
    assert topic_options(groupIdPrefix="mine").client_settings()["client_id"] == "mine"
    assert topic_options(**{"kafka.group.id": "g"}).client_settings()["client_id"] == "g"
    assert topic_options(**{"kafka.client.id": "c", "kafka.group.id": "g"}).client_settings()["client_id"] == "c"


def test_a_pasted_login_is_understood():
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="pencil";'
    given = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": jaas,
    }
    assert repr(topic_options(**given).client_settings()["sasl"]) == "Scram('SCRAM-SHA-256', 'alice')"


def test_every_option_of_sparks_own_source_is_known():
    theirs = {
        "assign", "subscribe", "subscribePattern", "startingOffsets", "endingOffsets", "startingOffsetsByTimestamp",
        "endingOffsetsByTimestamp", "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestampStrategy",
        "failOnDataLoss", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
        "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
        "groupIdPrefix", "includeHeaders",
    }  # fmt: skip
    assert theirs <= {line.name for line in options_of(TopicOptions).values()}
