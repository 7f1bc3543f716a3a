"""Everyone on this machine may look; who has the token may act; nobody else may anything."""

import pytest

from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.operations.dashboard.server import Dashboard
from tests.operations.dashboard.asking import ask
from tests.operations.dashboard.conftest import TOKEN
from tests.operations.dashboard.pretence import PretendFleet
from tests.waiting import eventually

PATHS = ["/", "/health", "/status", "/metrics", "/decisions", "/events", "/control", "/nowhere"]
OFF = {"fleet": "ads", "action": "off"}


@pytest.mark.parametrize("where", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.2:{port}", ""]
)
def test_a_foreign_host_is_refused(page: Dashboard, where: str, host: str) -> None:
    """A name that leads here by DNS must not open the page to another page's scripts."""
    answer = ask(page, where, Host=host.format(port=page.server_port))
    assert answer.status == 403
    assert "host" in answer.json["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("where", ["/", "/status", "/control"])
@pytest.mark.parametrize("token", [None, "", "a token", TOKEN[:-1], TOKEN + "x"])
def test_without_the_token_one_may_only_look(
    page: Dashboard, method: str, where: str, token: str | None
) -> None:
    assert ask(page, where, method, OFF, token).status == 401


def test_a_wrong_token_changes_nothing(fleet: PretendFleet, page: Dashboard) -> None:
    ask(page, "/control", "POST", OFF, "wrong")
    assert ask(page, "/health").json["fleets"] == {"ads": "holding"}
    assert ask(page, "/control", "POST", OFF, TOKEN).status == 200
    eventually(lambda: [command.action for command in fleet.commands] == ["off"], 20)


def test_another_page_may_not_act_even_with_the_token(page: Dashboard) -> None:
    answer = ask(page, "/control", "POST", OFF, TOKEN, Origin="http://evil.example")
    assert answer.status == 403


@pytest.mark.parametrize(
    "body", ["", "not JSON", "[1]", "x" * 5000, {"fleet": "nobody", "action": "off"}]
)
def test_what_is_no_command_is_refused(
    controller: ControllerProcess, page: Dashboard, body: object
) -> None:
    ask(page, "/health")
    answer = ask(page, "/control", "POST", body, TOKEN)
    assert answer.status == 400
    assert answer.json["error"]


def test_a_policy_from_outside_is_one_that_comes_with_us(
    controller: ControllerProcess, page: Dashboard
) -> None:
    """``module:Class`` would import whatever is named."""
    ask(page, "/health")
    command = {"fleet": "ads", "action": "policy", "policy": "os:system"}
    assert "unknown policy" in ask(page, "/control", "POST", command, TOKEN).json["error"]


def test_with_the_token_an_unknown_method_is_unknown(page: Dashboard) -> None:
    assert ask(page, "/status", "DELETE", token=TOKEN).status == 405


def test_it_listens_on_loopback_alone(page: Dashboard) -> None:
    assert page.server_address[0] == "127.0.0.1"


def test_the_browser_is_told_to_load_nothing_from_elsewhere(page: Dashboard) -> None:
    answer = ask(page, "/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "http:" not in answer.text.replace("http://www.w3.org", "")
    assert "https:" not in answer.text
