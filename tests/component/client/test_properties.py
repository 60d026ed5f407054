"""Settings by Kafka's names."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client.errors import ConfigurationError
from ottla.client.properties import settings_of


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key in one file."""
    path = tmp_path_factory.mktemp("tls")
    key, chain, both = path / "key.pem", path / "chain.pem", path / "both.pem"
    subject = ("-subj", "/CN=localhost", "-days", "2")
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes")
    subprocess.run([*new, *subject, "-keyout", str(key), "-out", str(chain)], check=True, capture_output=True)
    both.write_text(key.read_text() + chain.read_text())
    return both


def test_tls_trusts_the_machine_unless_told_otherwise(certificate: Path):
    plain = settings_of({"security.protocol": "SSL"})["tls"]
    assert isinstance(plain, ssl.SSLContext)
    assert plain.check_hostname
    own = settings_of({"security.protocol": "SSL", "ssl.truststore.location": str(certificate)})["tls"]
    assert own is not None
    assert [dict(each[0] for each in found["subject"])["commonName"] for found in own.get_ca_certs()] == ["localhost"]


def test_trust_may_stand_in_the_file_itself(certificate: Path):
    text = certificate.read_text()
    chain = text[text.index("-----BEGIN CERTIFICATE") :]
    key = text[: text.index("-----BEGIN CERTIFICATE")]
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
        "ssl.truststore.certificates": chain,
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
        "ssl.endpoint.identification.algorithm": "",
    }
    settings = settings_of(properties)
    assert settings["tls"] is not None
    assert not settings["tls"].check_hostname
    assert len(settings["tls"].get_ca_certs()) == 1


def test_a_certificate_of_our_own_is_loaded(certificate: Path, tmp_path: Path):
    properties = {"security.protocol": "SSL", "ssl.keystore.location": str(certificate), "ssl.keystore.type": "PEM"}
    assert settings_of(properties)["tls"] is not None
    (tmp_path / "bad.pem").write_text("no key")
    with pytest.raises(ConfigurationError, match=r"ssl\.keystore: .*bad\.pem cannot be used"):
        settings_of(properties | {"ssl.keystore.location": str(tmp_path / "bad.pem")})


@pytest.fixture
def pkcs12(certificate: Path, tmp_path: Path) -> Path:
    """The same certificate and key in the other format."""
    path = tmp_path / "store.p12"
    words = ["pkcs12", "-export", "-in", certificate, "-inkey", certificate, "-out", path, "-passout", "pass:secret"]
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    return path


def test_pkcs12_stores_are_opened(pkcs12: Path):
    properties = {"security.protocol": "SSL"}
    for kind in ("truststore", "keystore"):
        properties |= {f"ssl.{kind}.location": str(pkcs12), f"ssl.{kind}.password": "secret"}
    context = settings_of(properties)["tls"]
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(
        ConfigurationError, match=r"store\.p12 cannot be opened with ssl\.keystore\.password"
    ) as refused:
        settings_of(properties | {"ssl.keystore.password": "wrong"})
    assert "wrong" not in str(refused.value)


def test_without_the_package_for_pkcs12_the_way_out_is_told(pkcs12: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(ConfigurationError, match=r"pip install ottla\[security\].*openssl pkcs12 -in"):
        settings_of({"security.protocol": "SSL", "ssl.truststore.location": str(pkcs12)})
