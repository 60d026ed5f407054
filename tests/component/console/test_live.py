"""The page of live traffic: what passes, what is held back, and what the page needs where it cannot show anything."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import ottla.testing
from ottla.client import topics
from ottla.client.acls import Acl, Operation, PatternType, Permission, ResourceType, add
from ottla.client.blocking import BlockingClient
from ottla.client.properties import settings_of
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from ottla.wire.access import CLUSTER_NAME
from tests.component.console.served import Browser, console

SETTINGS = {"ottla.inspect.listeners": "http://127.0.0.1:0", "ottla.inspect.traffic.enable": "true"}


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Broker, Browser]]:
    with ottla.testing.broker(**SETTINGS) as broker, console(broker.bootstrap_servers) as browser:
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        yield broker, browser


def ask(broker: Broker, name: str) -> None:
    with BlockingClient(broker.bootstrap_servers, client_id="worker-<1>") as client:
        client.call(topics.create, NewTopic(name))


def test_requests_and_responses_of_clients(watched: tuple[Broker, Browser]):
    broker, browser = watched
    assert browser.twin("/live.json?api=CreateTopics")["data"]["since_ms"] is not None
    ask(broker, "orders")
    data = browser.until("/live.json?api=CreateTopics", lambda data: len(data["frames"]) == 2)
    response, request = data["frames"]
    assert (request["dir"], response["dir"]) == ("req", "resp"), "the newest comes first"
    assert (request["client_id"], request["principal"], request["node"]) == ("worker-<1>", "User:ANONYMOUS", 1)
    assert (request["api"], request["corr"]) == (response["api"], response["corr"])
    assert (request["text"], request["json"]["topics"][0]["name"]) == ("topic orders", "orders")
    assert (request["ms"], response["ms"] > 0, data["dropped"]) == (None, True, 0)
    page = browser.page("/live?api=CreateTopics")
    assert "0 dropped" in page.words
    assert "worker-&lt;1&gt;" in page.text
    assert f'href="/wire/api/CreateTopics/request-v{request["version"]}"' in page.text
    assert "may hold secrets or records" in page.words, "settings of topics may be secrets"
    assert "style=" not in page.text
    assert 'data-live="of=frame"' in page.text
    assert "Reload" in page.words


def test_errors_only_and_bytes(watched: tuple[Broker, Browser]):
    broker, browser = watched
    browser.twin("/live.json?errors=1&client=worker-*")
    browser.twin("/live.json?api=metadata&client=worker-*")
    ask(broker, "twice")
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        ask(broker, "twice")
    data = browser.until("/live.json?errors=1&client=worker-*", lambda data: len(data["frames"]) == 2)
    assert [(each["dir"], each["error"]) for each in data["frames"]] == [
        ("resp", "TOPIC_ALREADY_EXISTS"),
        ("req", None),
    ]
    assert "TOPIC_ALREADY_EXISTS" in browser.page("/live?errors=1&client=worker-*").words
    frames = browser.until("/live.json?api=metadata&client=worker-*", lambda data: len(data["frames"]) >= 4)["frames"]
    asked = next(each for each in frames if each["dir"] == "req")
    page = browser.page("/live?api=metadata&client=worker-*")
    assert f'value="{asked["hex"]}"' in page.text
    form = {"content_type": "application/x-www-form-urlencoded"}
    decoded = browser.ask("/wire/decode.json", "POST", f"bytes={asked['hex']}&name=MetadataRequest", **form)
    assert (decoded.status, decoded.json["data"]["error"]) == (200, None)


def test_a_query_that_is_not_understood(watched: tuple[Broker, Browser]):
    _, browser = watched
    answer = browser.ask("/live.json?api=Fetsh")
    assert (answer.status, answer.json["error"]) == (400, "unknown API 'Fetsh'; the nearest is Fetch")
    assert browser.ask("/live?errors=2").status == 400
    assert browser.ask("/live?speed=1").status == 400


def test_without_the_setting_the_page_says_what_it_needs(browser: Browser):
    twin = browser.twin("/live.json")
    assert twin["degraded"] == [{"what": "node 1", "why": "needs ottla.inspect.traffic.enable=true on node 1"}]
    assert twin["data"]["frames"] == []
    assert "Node 1: needs ottla.inspect.traffic.enable=true" in browser.page("/live").words


def test_other_brokers_do_not_tell():
    with ottla.testing.broker() as broker, console(broker.bootstrap_servers) as browser:
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        (missing,) = browser.twin("/live.json")["degraded"]
        assert "needs brokers of ottla with an inspect listener" in missing["why"]
        page = browser.page("/live")
        assert "Nothing can be shown: needs brokers of ottla" in page.words
        assert "data-live" not in page.text


# --- rights -----------------------------------------------------------------------------------------------------------

SECURED = {
    **SETTINGS,
    "ottla.web.security.listener.name": "SASL_PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "ottla.audit.file": "none",
}


@contextmanager
def console_of(made: Broker, user: str) -> Iterator[Browser]:
    login = settings_of(made.security.client_properties(user, mechanism="PLAIN"))
    with console(made.bootstrap_servers, **login) as browser:
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        yield browser


def test_each_user_sees_what_his_rights_allow_and_nobody_sees_a_password():
    with ottla.testing.broker(security="sasl_plaintext", **SECURED) as made:
        login = settings_of(made.security.client_properties("admin", mechanism="PLAIN"))
        with console_of(made, "bob") as browser:
            assert "needs DESCRIBE_CONFIGS on the cluster" in browser.page("/live").words
            with BlockingClient(made.bootstrap_servers, **login) as admin:
                to_bob = ("User:bob", "*", Operation.DESCRIBE_CONFIGS, Permission.ALLOW)
                admin.call(add, [Acl(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, *to_bob)])
            denied = "needs ALTER on the cluster (you are User:bob)"
            browser.until("/live.json", lambda data: [each["why_not"] for each in data["nodes"]] == [denied])
        with console_of(made, "admin") as browser:
            browser.twin("/live.json?api=SaslAuthenticate")
            alice = settings_of(made.security.client_properties("alice", mechanism="PLAIN"))
            with BlockingClient(made.bootstrap_servers, **alice):
                pass
            browser.until("/live.json?api=SaslAuthenticate", lambda data: len(data["frames"]) >= 2)
            shown = (
                browser.page("/live?api=SaslAuthenticate").text + browser.page("/live.json?api=SaslAuthenticate").text
            )
    assert "withheld_bytes" in shown
    for secret in (b"alice-secret", b"admin-secret"):
        assert secret.decode() not in shown
        assert secret.hex() not in shown.replace(" ", "")
        assert b64encode(secret).decode()[:12] not in shown
