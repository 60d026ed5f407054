"""Settings by Kafka's names."""

from pathlib import Path

import pytest

from ottla.client.errors import ConfigurationError
from ottla.client.properties import settings_of
from ottla.client.sasl import Plain, Scram
from ottla.client.settings import Changes, ClientSettings

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3\\"cr=et, ";'


def sasl(**properties: str) -> Changes:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return settings_of({"security.protocol": "SASL_PLAINTEXT", **named})


def test_times_and_names_are_taken_over_and_the_rest_is_passed_over():
    properties = {"client.id": "tool", "request.timeout.ms": "5000", "group.id": "g", "bootstrap.servers": "a:1"}
    assert settings_of(properties) == {"client_id": "tool", "request_timeout_ms": 5000}
    assert settings_of({}) == {}
    assert settings_of({"allow.auto.create.topics": "true"}) == {"allow_auto_create_topics": True}


def test_a_wrong_number_names_its_key():
    with pytest.raises(ConfigurationError, match=r"request\.timeout\.ms is 'soon'"):
        settings_of({"request.timeout.ms": "soon"})


def test_a_wrong_protocol_is_refused_with_those_there_are():
    with pytest.raises(ConfigurationError, match="SASL_SSL"):
        settings_of({"security.protocol": "TLS"})


def test_a_login_is_read_from_the_jaas_line():
    login = sasl(sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=JAAS)["sasl"]
    assert isinstance(login, Scram)
    assert login.mechanism == "SCRAM-SHA-512"
    assert login.username == "alice"
    assert login._password == b's3"cr=et, '


def test_a_login_may_have_librdkafka_s_names():
    login = sasl(sasl_mechanism="PLAIN", sasl_username="bob", sasl_password="pw")["sasl"]
    assert isinstance(login, Plain)
    assert next(login.exchange()) == b"\0bob\0pw"


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({}, r"sasl\.mechanism"),
        ({"sasl_mechanism": "PLAIN"}, r"sasl\.jaas\.config"),
        ({"sasl_mechanism": "GSSAPI", "sasl_jaas_config": JAAS}, "GSSAPI"),
    ],
)
def test_an_incomplete_login_says_what_is_missing(properties: dict[str, str], named: str):
    with pytest.raises(ConfigurationError, match=named):
        sasl(**properties)


def test_without_sasl_the_login_is_not_looked_at():
    assert "sasl" not in settings_of({"security.protocol": "plaintext", "sasl.mechanism": "nonsense"})


@pytest.mark.parametrize("kind", ["truststore", "keystore"])
def test_java_s_own_stores_are_refused_with_a_way_out(kind: str, tmp_path: Path):
    (tmp_path / "store.jks").touch()
    properties = {"security.protocol": "SSL", f"ssl.{kind}.location": str(tmp_path / "store.jks")}
    with pytest.raises(ConfigurationError, match=rf"keytool .* set ssl\.{kind}\.type=PKCS12"):
        settings_of(properties)
    with pytest.raises(ConfigurationError, match="does not exist"):
        settings_of({"security.protocol": "SSL", f"ssl.{kind}.location": "/nowhere/at/all.pem"})


def test_every_setting_can_be_changed_by_name():
    assert set(Changes.__annotations__) == set(ClientSettings.__dataclass_fields__)
    assert ClientSettings.of(client_id="me").client_id == "me"
    with pytest.raises(ConfigurationError, match="the nearest is client_id"):
        ClientSettings.of(clientid="me")  # type: ignore[call-arg]


@pytest.mark.parametrize("changes", [{"max_in_flight": 0}, {"request_timeout_ms": "5"}, {"retry_backoff_ms": -1}])
def test_a_setting_that_cannot_be_is_named(changes: Changes):
    with pytest.raises(ConfigurationError, match=next(iter(changes))):
        ClientSettings.of(**changes)


def test_a_pause_of_nothing_is_allowed():
    assert ClientSettings.of(retry_backoff_ms=0).retry_backoff_ms == 0
