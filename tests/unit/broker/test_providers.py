"""Settings whose values stand in files or in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.config.node_config import ConfigError, NodeConfig
from ottla.broker.config.providers import Providers
from ottla.wire.errors import ErrorCode
from tests.unit.broker.setting_requests import BROKER, DELETE, SET, SettingsNode

PACKAGE = "org.apache.kafka.common.config.provider"
ALL = {
    "config.providers": "secrets,folder,variables",
    "config.providers.secrets.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.folder.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.variables.class": f"{PACKAGE}.EnvVarConfigProvider",
}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text("partitions=7\nrack=north\nword=hush-hush\n")
    return path


def test_values_come_from_files_directories_and_the_environment(secrets: Path):
    providers = Providers({"RACK": "south", "N": "3"})
    (secrets.parent / "plain").write_text("from a file of its own\n")
    settings = {
        **ALL,
        "a": f"${{secrets:{secrets}:rack}}",
        "b": f"${{folder:{secrets.parent}:plain}}",
        "c": "${variables:RACK}",
        "d": f"x-${{variables:N}}-${{secrets:{secrets}:partitions}}",
        "e": "${unknown:x:y}",
        "f": "$5 and {}",
    }
    resolved = providers.resolved(settings)
    assert {name: resolved[name] for name in "abcdef"} == {
        "a": "north",
        "b": "from a file of its own",
        "c": "south",
        "d": "x-3-7",
        "e": "${unknown:x:y}",
        "f": "$5 and {}",
    }
    assert {name: resolved[name] for name in ALL} == ALL


def test_the_usual_names_need_no_class(secrets: Path):
    settings = {"config.providers": "file,env", "a": f"${{file:{secrets}:rack}}", "b": "${env:RACK}"}
    resolved = Providers({"RACK": "west"}).resolved(settings)
    assert (resolved["a"], resolved["b"]) == ("north", "west")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("${secrets:@:nothing}", "the file @ has no key nothing"),
        ("${secrets:@.gone:rack}", "the file @.gone cannot be read: No such file or directory"),
        ("${secrets:rack}", "no path is given"),
        ("${folder:@:../x}", "../x is not a file name in @"),
        ("${variables:MISSING}", "the environment variable MISSING is not set"),
        ("${variables:some/path:RACK}", "environment variables have no path"),
    ],
)
def test_what_cannot_be_filled_names_setting_file_and_key(secrets: Path, text: str, complaint: str):
    text = text.replace("@", str(secrets))
    with pytest.raises(ConfigError) as caught:
        Providers({"RACK": "west"}).resolved({**ALL, "broker.rack": text})
    assert str(caught.value) == f"broker.rack cannot be {text}: {complaint.replace('@', str(secrets))}"


def test_a_class_that_is_not_known_is_refused(secrets: Path):
    settings = {"config.providers": "vault", "config.providers.vault.class": "com.example.Vault", "a": "${vault:x:y}"}
    with pytest.raises(ConfigError, match=r"config.providers.vault.class is com.example.Vault; known: "):
        Providers({}).resolved(settings)


def test_paths_and_variables_can_be_limited(secrets: Path):
    inside = {**ALL, "config.providers.secrets.param.allowed.paths": f"/nowhere,{secrets.parent}"}
    assert Providers({}).resolve("a", f"${{secrets:{secrets}:rack}}", inside) == "north"
    outside = {**ALL, "config.providers.secrets.param.allowed.paths": f"{secrets.parent}/other"}
    with pytest.raises(ConfigError, match=r"allowed.paths does not allow"):
        Providers({}).resolve("a", f"${{secrets:{secrets}:rack}}", outside)
    pattern = {**ALL, "config.providers.variables.param.allowlist.pattern": "OTTLA_.*"}
    with pytest.raises(ConfigError, match=r"allowlist.pattern does not allow HOME"):
        Providers({"HOME": "x"}).resolve("a", "${variables:HOME}", pattern)


def test_a_node_s_own_settings_are_filled(secrets: Path):
    config = NodeConfig(ALL, {"num.partitions": f"${{secrets:{secrets}:partitions}}"})
    assert config["num.partitions"] == 7
    assert config.static["num.partitions"] == "7"


@pytest.mark.parametrize("name", ["num.partitions", "listeners", "compression.type", "process.roles"])
def test_what_a_provider_gave_stands_in_no_complaint(secrets: Path, name: str):
    with pytest.raises(ConfigError) as caught:
        NodeConfig(ALL, {name: f"${{secrets:{secrets}:word}}"})
    assert name in str(caught.value)
    assert "hush-hush" not in str(caught.value)


# --- settings that are made while a node runs


def node(secrets: Path) -> SettingsNode:
    return SettingsNode(**{name.replace(".", "_"): text for name, text in ALL.items()})


def test_dynamic_settings_are_filled_where_they_act_and_kept_as_given(secrets: Path):
    found = node(secrets)
    secrets.write_text("bytes=5000000\n")
    placeholder = f"${{secrets:{secrets}:bytes}}"
    assert found.alter(BROKER, "1", ("message.max.bytes", SET, placeholder)) == 0
    assert found.settings["message.max.bytes"] == 5_000_000
    assert found.image.configs(BROKER, "1")["message.max.bytes"] == placeholder
    entry = found.entry(BROKER, "1", "message.max.bytes")
    assert (entry.value, entry.synonyms[0].value) == ("5000000", placeholder)


def test_a_file_is_read_again_when_the_setting_is_made_again(secrets: Path):
    found = node(secrets)
    placeholder = f"${{secrets:{secrets}:bytes}}"
    for size in (5_000_000, 6_000_000):
        secrets.write_text(f"bytes={size}\n")
        assert found.alter(BROKER, "", ("message.max.bytes", SET, placeholder)) == 0
        assert found.settings["message.max.bytes"] == size


def test_providers_can_be_configured_dynamically_too(secrets: Path):
    found = SettingsNode()
    steps = [("config.providers", SET, "file"), ("message.max.bytes", SET, f"${{file:{secrets}:partitions}}")]
    assert found.alter(BROKER, "", *steps) == 0
    assert found.settings["message.max.bytes"] == 7
    assert found.alter(BROKER, "", *((name, DELETE, None) for name, *_ in steps)) == 0
    assert found.settings["message.max.bytes"] == 1_048_588


@pytest.mark.parametrize("key", ["nothing", "word"])
def test_what_cannot_be_filled_or_is_no_value_is_refused(secrets: Path, key: str):
    found = node(secrets)
    placeholder = f"${{secrets:{secrets}:{key}}}"
    assert found.alter(BROKER, "1", ("message.max.bytes", SET, placeholder)) == ErrorCode.INVALID_REQUEST


def test_a_file_that_is_gone_leaves_the_weaker_value_in_force(secrets: Path, caplog: pytest.LogCaptureFixture):
    found = node(secrets)
    secrets.write_text("bytes=5000000\nbad=hush-hush\n")
    assert found.alter(BROKER, "1", ("message.max.bytes", SET, f"${{secrets:{secrets}:bytes}}")) == 0
    for text in ("", "bytes=hush-hush\n"):
        secrets.write_text(text)
        found.settings.forget()
        assert found.settings["message.max.bytes"] == 1_048_588
    assert "message.max.bytes cannot be" in caplog.text
    assert "hush-hush" not in caplog.text
