"""Logins and TLS. On Apache Kafka alone, as ottla's broker has no security yet."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.apache import ApacheKafka, free_ports
from tests.interop.credentials import PASSWORD, PLAIN_LINE, SCRAM_LINE, USER, scram_password
from tests.interop.spark.queries import Queries
from tests.interop.spark.topics import Topics

OAUTH_LINE = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="admin";'
)
STORE_PASSWORD = "marjoram"


class Guarded(NamedTuple):
    kafka: ApacheKafka
    doors: dict[str, str]
    folder: Path
    topic: str


@pytest.fixture(scope="module")
def guarded(apache_jars: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    _make_client_certificate(certificates)
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={scram_password()}]" for bits in (256, 512)]
    added = [word for each in scram for word in ("--add-scram", each)]
    kafka = ApacheKafka(tmp_path_factory.mktemp("guarded"), format_arguments=("--standalone", *added))
    ports = dict(zip(("SASL", "TLS", "MUTUAL", "BOTH"), free_ports(4), strict=True))
    opened = "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    listeners = f"PLAINTEXT://{kafka.bootstrap_servers},CONTROLLER://{kafka.controller_servers}{opened}"
    kafka.settings |= {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,MUTUAL:SSL,BOTH:SASL_SSL"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    for name in ("sasl", "both"):
        kafka.settings |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"listener.name.{name}.plain.sasl.jaas.config": PLAIN_LINE,
            f"listener.name.{name}.scram-sha-256.sasl.jaas.config": SCRAM_LINE,
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config": SCRAM_LINE,
            f"listener.name.{name}.oauthbearer.sasl.jaas.config": OAUTH_LINE,
        }
    with kafka:
        topics = Topics(kafka.bootstrap_servers)
        topic = topics.create()
        topics.fill(topic, 0, 7)
        topics.close()
        doors = {name.lower(): f"127.0.0.1:{port}" for name, port in ports.items()}
        yield Guarded(kafka, doors, certificates, topic)


def _make_client_certificate(folder: Path) -> None:
    for arguments in (
        "req -newkey rsa:2048 -nodes -subj /CN=alice -keyout alice.key -out alice.csr",
        "x509 -req -in alice.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out alice.crt",
        f"pkcs12 -export -in alice.crt -inkey alice.key -out alice.p12 -passout pass:{STORE_PASSWORD}",
    ):
        subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)
    (folder / "alice.pem").write_text((folder / "alice.key").read_text() + (folder / "alice.crt").read_text())


def login(mechanism: str, password: str = "") -> dict[str, str]:
    if mechanism == "OAUTHBEARER":
        return {"kafka.sasl.mechanism": mechanism, "kafka.ottla.oauth.callback": "tests.interop.spark.tokens:alice"}
    word = password or (PASSWORD if mechanism == "PLAIN" else scram_password())
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    line = f'org.apache.kafka.common.security.{module} required username="{USER}" password="{word}";'
    return {"kafka.sasl.mechanism": mechanism, "kafka.sasl.jaas.config": line}


def trust(folder: Path) -> dict[str, str]:
    return {"kafka.ssl.truststore.location": str(folder / "ca.pem")}


def through(spark: Any, guarded: Guarded, door: str, tmp_path: Path, **options: str) -> Queries:
    return Queries(spark, guarded.doors[door], tmp_path)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("door", ["sasl", "both"])
def test_logins(spark: Any, guarded: Guarded, tmp_path: Path, mechanism: str, door: str):
    queries = through(spark, guarded, door, tmp_path)
    protocol = {"kafka.security.protocol": "SASL_SSL" if door == "both" else "SASL_PLAINTEXT"}
    more = trust(guarded.folder) if door == "both" else {}
    assert len(queries.rows(guarded.topic, **protocol, **login(mechanism), **more)) == 7


def test_tls_needs_a_trusted_certificate(spark: Any, guarded: Guarded, tmp_path: Path):
    queries = through(spark, guarded, "tls", tmp_path)
    options = {"kafka.security.protocol": "SSL"}
    assert len(queries.rows(guarded.topic, **options, **trust(guarded.folder))) == 7
    assert "its certificate was rejected" in queries.refusal(guarded.topic, **options)


@pytest.mark.parametrize("store", ["alice.pem", "alice.p12"])
def test_mutual_tls_needs_a_key_store(spark: Any, guarded: Guarded, tmp_path: Path, store: str):
    queries = through(spark, guarded, "mutual", tmp_path)
    options = {"kafka.security.protocol": "SSL", **trust(guarded.folder)}
    own = {"kafka.ssl.keystore.location": str(guarded.folder / store), "kafka.ssl.keystore.password": STORE_PASSWORD}
    assert len(queries.rows(guarded.topic, **options, **own)) == 7
    refused = queries.refusal(guarded.topic, **options)
    assert guarded.doors["mutual"] in refused


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_without_it(spark: Any, guarded: Guarded, tmp_path: Path, mechanism: str):
    queries = through(spark, guarded, "sasl", tmp_path)
    options = {"kafka.security.protocol": "SASL_PLAINTEXT", **login(mechanism, "oregano")}
    with pytest.raises(Exception) as raised:  # noqa: PT011  (any of Spark's)
        queries.frame(guarded.topic, **options).collect()
    assert "oregano" not in str(raised.value)
    text = queries.refusal(guarded.topic, **options)
    assert text.startswith(f"authentication at {guarded.doors['sasl']} failed: ")
    assert "\n" not in text
