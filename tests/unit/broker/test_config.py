"""Where settings come from, what is refused, and what listeners say."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from ottla import broker
from ottla.broker.config.node_config import (
    ConfigError,
    ListenerConfig,
    NodeConfig,
    environment_settings,
    file_settings,
    local_listeners,
    set_option,
)
from ottla.broker.config.supported_settings import SUPPORTED_SETTINGS
from ottla.core.metadata.config_defs import broker_defs
from ottla.core.replication.replica_selection import SELECTORS


def test_without_settings_a_node_is_a_cluster_of_its_own_on_this_machine():
    config = NodeConfig()
    assert config.node_id == 1
    assert config.listeners == (
        ListenerConfig("PLAINTEXT", "127.0.0.1", 9092),
        ListenerConfig("CONTROLLER", "127.0.0.1", 9093),
    )
    assert config.client_listeners == (ListenerConfig("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.controller_listener == "CONTROLLER"
    assert config.other_controllers() == []
    assert config.warnings() == []


def test_values_have_their_types():
    config = NodeConfig(
        {"num.partitions": "7", "delete.topic.enable": "FALSE", "log.cleaner.min.cleanable.ratio": "0.25"}
    )
    assert config["num.partitions"] == 7
    assert config["delete.topic.enable"] is False
    assert config["log.cleaner.min.cleanable.ratio"] == 0.25
    assert config["log.retention.hours"] == 168
    assert config["log.retention.ms"] is None


def test_a_later_place_counts_more_than_an_earlier_one():
    config = NodeConfig({"num.partitions": "2", "node.id": "5"}, {"num.partitions": "3"})
    assert (config["num.partitions"], config.node_id) == (3, 5)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"num.partition": "1"}, "there is no broker setting 'num.partition'; the nearest is num.partitions"),
        ({"num.partitions": "many"}, "num.partitions cannot be 'many': it is a whole number"),
        ({"num.partitions": "0"}, "num.partitions cannot be '0': it is at least 1"),
        ({"compression.type": "brotli"}, "compression.type cannot be 'brotli': it is one of uncompressed, zstd"),
        ({"listeners": "9092"}, "listeners has '9092'; a listener is NAME://host:port"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9094,CONTROLLER://:1"}, "listener PLAINTEXT is given twice"),
        ({"listeners": "PLAINTEXT://:9092"}, "controller.listener.names has CONTROLLER, which is not in listeners"),
        ({"listeners": "CONTROLLER://:9092"}, "listeners has no listener for clients"),
        ({"listeners": "LAN://:9092,CONTROLLER://:1"}, "listener LAN has no security protocol"),
        ({"advertised.listeners": "LAN://here:9092"}, "listener LAN has no security protocol"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "an address that clients cannot connect to"),
        ({"advertised.listeners": "SSL://here:9092"}, "advertised.listeners has SSL, which is not in listeners"),
        (
            {"process.roles": "broker"},
            "listeners has the controller listener CONTROLLER, but this node is only a broker",
        ),
        (
            {"process.roles": "controller"},
            "listeners has PLAINTEXT, but a node that is only a controller has no clients",
        ),
        (
            {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"},
            "set controller.quorum.bootstrap.servers",
        ),
        ({"controller.quorum.voters": "localhost:9093"}, "is not of the form id@host:port"),
        (
            {"log.dirs": "/one,/two", "cordoned.log.dirs": "/two,/three"},
            "cordoned.log.dirs has /three, which is not in log.dirs",
        ),
        ({"log.dirs": "/one", "cordoned.log.dirs": "*,/one"}, "cordoned.log.dirs has * and others"),
        ({"controller.quorum.voters": "1@one:9093,2@two:9093,1@two:9093"}, "has node 1 twice"),
        ({"controller.quorum.voters": "2@two:9093,3@three:9093"}, "this is controller 1, which"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings: dict[str, str], complaint: str):
    with pytest.raises(ConfigError) as refused:
        NodeConfig(settings)
    assert complaint in str(refused.value)


def test_the_value_of_a_password_is_not_repeated_in_a_complaint():
    key = broker_defs()["ssl.keystore.password"]
    assert key.is_sensitive
    assert key.parse("anything") == "anything"


def test_settings_of_listeners_and_of_configured_plugins_pass():
    NodeConfig({"listener.name.plaintext.ssl.keystore.location": "x"})
    NodeConfig({"config.providers": "file", "config.providers.file.class": "x"})
    with pytest.raises(ConfigError, match=r"config\.providers\.file\.class"):
        NodeConfig({"config.providers.file.class": "x"})


def test_what_ottla_does_not_act_on_is_named_in_one_warning():
    config = NodeConfig(
        {"num.io.threads": "3", "num.network.threads": "9", "num.partitions": "4", "queued.max.requests": "500"}
    )
    (warning,) = config.warnings()
    assert "num.io.threads, num.network.threads" in warning
    assert "num.partitions" not in warning
    assert "queued.max.requests" not in warning, "it was set to its default"


def test_every_supported_setting_is_a_setting_of_kafka():
    assert set(broker_defs()) >= SUPPORTED_SETTINGS


# --- listeners --------------------------------------------------------------------------------------------------------


def test_every_setting_that_is_read_counts_as_supported():
    """Whoever makes the broker look at another setting notes it, or people are told that it changes nothing."""
    source = Path(broker.__file__).parent
    looked_at = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(
            r'(?:settings|config|self)(?:\[|\._setting\(|_setting\()"([a-z0-9.]+)"', path.read_text()
        )
        if name in broker_defs()
    }
    assert len(looked_at) > 50
    assert looked_at - SUPPORTED_SETTINGS - {"broker.id"} == set()


def test_a_listener_on_all_addresses_is_advertised_by_the_machines_name():
    config = NodeConfig({"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"})
    assert config.advertised["PLAINTEXT"] == ListenerConfig("PLAINTEXT", socket.gethostname(), 9092)
    assert config.advertised["CONTROLLER"].host == socket.gethostname()


def test_advertised_listeners_stand_before_listeners():
    config = NodeConfig(
        {
            "listeners": "INSIDE://:9092,OUTSIDE://[::1]:9094,CONTROLLER://:9093",
            "advertised.listeners": "OUTSIDE://broker.example:19094",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    assert config.advertised["OUTSIDE"] == ListenerConfig("OUTSIDE", "broker.example", 19094)
    assert config.advertised["INSIDE"].port == 9092
    assert config.listeners[1] == ListenerConfig("OUTSIDE", "::1", 9094)
    assert str(config.listeners[1]) == "OUTSIDE://[::1]:9094"


def test_the_controller_sits_beside_the_port_for_clients():
    assert local_listeners(19092) == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert local_listeners(0) == "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


# --- the quorum -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", ["localhost:9093", "127.0.0.1:9093"])
def test_the_own_controller_is_no_other_one(own: str):
    assert NodeConfig({"controller.quorum.bootstrap.servers": own}).other_controllers() == []
    assert NodeConfig({"controller.quorum.voters": f"1@{own}"}).other_controllers() == []


def test_other_controllers_are_named():
    config = NodeConfig({"controller.quorum.bootstrap.servers": "localhost:9093,kafka-2:9093"})
    assert config.other_controllers() == ["kafka-2:9093"]
    assert NodeConfig({"controller.quorum.voters": "1@localhost:9093,2@kafka-2:9093"}).other_controllers() == [
        "2@kafka-2"
    ]


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text("# the node\nnode.id=3\nlog.dirs = /a,\\\n   /b\nnum.partitions:4\n")
    config = NodeConfig(file_settings(str(path)))
    assert (config.node_id, config.log_dirs, config["num.partitions"]) == (3, ("/a", "/b"), 4)
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        file_settings(str(tmp_path / "missing"))


def test_the_environment_has_settings_with_underscores():
    found = environment_settings(
        {"OTTLA_NUM_PARTITIONS": "3", "OTTLA_LISTENER_NAME_MY__LAN_X___Y": "z", "HOME": "/root", "OTTLA": "no"}
    )
    assert found == {"num.partitions": "3", "listener.name.my_lan.x-y": "z"}


def test_an_option_has_a_name_and_a_value():
    assert set_option("a.b = c=d") == ("a.b", "c=d")
    assert set_option("a=") == ("a", "")
    for bad in ("a", "=b"):
        with pytest.raises(ConfigError, match="write --set name=value"):
            set_option(bad)


def test_the_metadata_may_lie_apart():
    config = NodeConfig({"log.dirs": "/a,/b", "metadata.log.dir": "/m"})
    assert (config.log_dirs, config.metadata_dir, config.all_dirs) == (("/a", "/b"), "/m", ("/a", "/b", "/m"))
    assert NodeConfig({"log.dirs": "/a,/b"}).metadata_dir == "/a"


def test_a_replica_selector_must_be_one_that_there_is() -> None:
    with pytest.raises(ConfigError, match=r"com\.example\.Nearest is a Java class, which ottla cannot load"):
        NodeConfig({"replica.selector.class": "com.example.Nearest"}, {})
    assert NodeConfig({"replica.selector.class": SELECTORS[0]}, {})["replica.selector.class"] == SELECTORS[0]
