"""Alerts that reach a webhook or a mailbox, and how it is told when they don't."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headwater.compose import Composition
from headwater.deploy.units.alerts import Alert, AlertFailed, alert_of
from headwater.errors import FlowError, RunError
from headwater.service.calls import Policy
from tests.deploy import mail_server
from tests.service.endpoint import ok, serving

QUICK = Policy(retries=3, timeout=5.0, backoff=0.01)
NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
HOSTILE = {
    "note": "calm\r\nBcc: all@example.org\r\n\r\n.\r\nQUIT",
    "say\nso": "\x1b[2J\u202e",
    "lone": "\ud800",
}


def alert(patience: Policy = QUICK, **told: Any) -> Alert:
    return alert_of(told, flow="weather", node="alerts", patience=patience)


def events(number: int) -> list[dict[str, Any]]:
    return [{"cells": cells} for cells in range(number)]


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A place where nobody listens, and nobody else begins to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "_FROM", "_USER", "_PASSWORD"):
        monkeypatch.delenv(f"HEADWATER_SMTP{name}", raising=False)


# --- webhooks ------------------------------------------------------------------------------------


def test_a_webhook_gets_a_document_with_ids_and_a_key() -> None:
    given = {
        "at": NOON,
        "dbz": [1.5, float("nan")],
        "sum": Decimal("1.10"),
        "map": [("a", 1)],
        "event_id": "theirs",
    }
    with serving(lambda *_: ok({})) as hook:
        alert(webhook=hook.url).send([given, HOSTILE], [7, -(2**63)], 3)
        alert(webhook=hook.url).send([], [], 3)
    assert hook.seen == [
        {
            "flow": "weather",
            "node": "alerts",
            "version": 3,
            "events": [
                {
                    "event_id": 7,
                    "at": "2025-06-01T12:00:00+00:00",
                    "dbz": [1.5, "NaN"],
                    "sum": "1.10",
                    "map": {"a": 1},
                },
                {"event_id": -(2**63), **HOSTILE},
            ],
        }
    ]
    assert hook.headers["Idempotency-Key"] == "weather/alerts/7/-9223372036854775808"
    assert hook.headers["Content-Type"] == "application/json"


def test_many_events_are_several_requests() -> None:
    with serving(lambda *_: ok({})) as hook:
        alert(webhook=hook.url).send(events(201), list(range(1000, 1201)), 1)
    assert [len(each["events"]) for each in hook.seen] == [100, 100, 1]
    assert hook.headers["Idempotency-Key"] == "weather/alerts/1200/1200"
    assert [e["event_id"] for each in hook.seen for e in each["events"]] == [*range(1000, 1201)]


def test_a_webhook_that_fails_is_asked_again_with_the_same() -> None:
    with serving(lambda _, before: ok({}) if before == 2 else (500, b"")) as hook:
        alert(webhook=hook.url).send(events(1), [7], 1)
    assert len(hook.seen) == 3
    assert hook.seen[0] == hook.seen[2]


@pytest.mark.parametrize(
    ("status", "tries"), [(500, "4 tries"), (404, "1 try"), (307, "1 try")], ids=str
)
def test_a_webhook_that_goes_on_failing_is_told_without_its_secret(status: int, tries: str) -> None:
    """A redirect is not followed either, wherever it leads."""

    def first_hundred(event: Any, _: int) -> tuple[int, bytes]:
        return ok({}) if event["events"][0]["event_id"] == 0 else (status, b"")

    with serving(first_hundred) as hook, pytest.raises(AlertFailed) as error:
        alert(webhook=f"{hook.url}/s3cret?token=x").send(events(120), list(range(120)), 1)
    text = str(error.value)
    assert (
        f"alert weather/alerts: 20 of 120 events did not reach {hook.url[:-6]}: HTTP {status}"
        in text
    )
    assert f"({tries}); see to the receiver" in text
    assert "s3cret" not in text
    assert len(text.splitlines()) == 1
    assert isinstance(error.value, RunError)
    assert len(hook.seen) == 1 + int(tries[0])


def test_a_webhook_where_nobody_listens(nowhere: str) -> None:
    with pytest.raises(AlertFailed, match=r"did not reach http://127.*refused \(4 tries\)"):
        alert(webhook=f"http://{nowhere}/x").send(events(1), [7], 1)


def test_a_webhook_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        began = time.monotonic()
        with pytest.raises(AlertFailed, match=r"timed out \(2 tries\)"):
            alert(Policy(retries=1, timeout=0.2, backoff=0.01), webhook=url).send(events(1), [7], 1)
        assert time.monotonic() - began < 3


# --- mails ---------------------------------------------------------------------------------------


def test_a_mail_lists_events_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [{"at": NOON, "dbz": list(range(1_000)), "near": {"scans": [0] * 21}}, *events(24)]
    with mail_server.serving() as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        monkeypatch.setenv("HEADWATER_SMTP_FROM", "Storms <storms@example.org>")
        mail = alert(email=["a@example.org", "b@example.org"])
        mail.send(told, list(range(25)), 2)
        mail.send(told, list(range(25)), 2)
        mail.send([], [], 2)
    first, again = server.messages
    assert first["Subject"] == "alert weather/alerts: 25 events"
    assert first["From"] == "Storms <storms@example.org>"
    assert first["To"] == "a@example.org, b@example.org"
    assert first["Message-ID"] == again["Message-ID"]
    assert {"mail FROM:<storms@example.org>", "rcpt TO:<b@example.org>"} <= {
        line.split(" size=")[0] for line in server.lines
    }
    lines = first.get_content().splitlines()
    assert lines[0] == "25 events of flow weather, node alerts, version 2"
    assert "  at: 2025-06-01T12:00:00+00:00" in lines
    assert f"  dbz: {[*range(20)]}".replace("]", ', "… 980 more"]') in lines
    assert any(line.startswith("  near:") and line.endswith('"… 1 more"]}') for line in lines)
    assert sum(line.startswith("event ") for line in lines) == 20
    assert "… and 5 more" in lines


def test_what_an_event_holds_stays_in_its_line_of_the_mail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject = "storm\r\nBcc: all@example.org"
    with mail_server.serving() as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        alert(email="a@example.org", subject=subject).send([{**HOSTILE, "x": "é" * 600}], [7], 1)
    (message,) = server.messages
    assert message["Subject"] == "storm Bcc: all@example.org"
    assert message["Bcc"] is None
    assert [line for line in server.lines if line.lower().startswith("rcpt")] == [
        "rcpt TO:<a@example.org>"
    ]
    assert message.get_content().splitlines() == [
        "1 event of flow weather, node alerts, version 1",
        "",
        "event 7",
        r'  note: "calm\r\nBcc: all@example.org\r\n\r\n.\r\nQUIT"',
        r'  "say\nso": "\u001b[2J\u202e"',
        r'  lone: "\ud800"',
        f"  x: {'é' * 500}… 100 more characters",
    ]


def test_a_mail_server_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server.serving({"mail": ["451 busy", "421 later"]}) as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        alert(email="a@example.org").send(events(1), [7], 1)
    assert len(server.mails) == 1


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"mail": ["550 no such sender"]}, r"550 no such sender \(1 try\)"),
        ({"rcpt TO:<b": ["550 gone"]}, r"refused for b@example.org: 550 gone \(1 try\)"),
        ({"rcpt": ["450 a"] * 8}, r"refused for a@example.org: 450 a; b@.*: 450 a \(4 tries\)"),
    ],
    ids=["sender", "one of two", "both, for now"],
)
def test_what_a_mail_server_refuses_is_told(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]], told: str
) -> None:
    with mail_server.serving(answers) as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        with pytest.raises(AlertFailed, match=told):
            alert(email=["a@example.org", "b@example.org"]).send(events(1), [7], 1)


@pytest.mark.parametrize("server", ["mail:port", "user@host", "host/x", ":25"])
def test_a_server_that_is_no_server(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setenv("HEADWATER_SMTP", server)
    with pytest.raises(AlertFailed, match=f"'{server}' is not host:port"):
        alert(email="a@example.org").send(events(1), [7], 1)


def test_without_a_mail_server_the_setting_is_told(
    monkeypatch: pytest.MonkeyPatch, nowhere: str
) -> None:
    monkeypatch.setenv("HEADWATER_SMTP", nowhere)
    with pytest.raises(AlertFailed) as error:
        alert(email="a@example.org").send(events(2), [7, 8], 1)
    assert re.sub(r"Errno \d+", "Errno", str(error.value)) == (
        f"alert weather/alerts: no mail of 2 events went through {nowhere}: [Errno] Connection "
        "refused (4 tries); set HEADWATER_SMTP=host:port to a mail server that takes it"
    )


def test_a_password_is_not_sent_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_SMTP_USER", "storms")
    monkeypatch.setenv("HEADWATER_SMTP_PASSWORD", "s3cret")
    with mail_server.serving() as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        with pytest.raises(AlertFailed, match="STARTTLS extension not supported") as error:
            alert(email="a@example.org").send(events(1), [7], 1)
    assert not any(line.startswith("AUTH") for line in server.lines)
    assert "s3cret" not in str(error.value)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_password_goes_over_tls_to_the_right_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 "
        "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    monkeypatch.setenv("HEADWATER_SMTP_USER", "storms")
    monkeypatch.setenv("HEADWATER_SMTP_PASSWORD", "s3cret")
    with mail_server.serving(tls=context) as server:
        monkeypatch.setenv("HEADWATER_SMTP", server.place)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        alert(email="a@example.org").send(events(1), [7], 1)
        assert len(server.mails) == 1
        at = server.lines.index("STARTTLS")
        assert not any(line.startswith("AUTH") for line in server.lines[:at])
        assert any(line.startswith("AUTH PLAIN") for line in server.lines[at:])


# --- what a sink says ----------------------------------------------------------------------------


def test_the_alert_of_a_flow_files_sink() -> None:
    flow = Composition.parse(
        "flow: weather\n"
        "nodes:\n"
        "  radar: {source: {stream: radar}}\n"
        "  strong: {filter: {from: radar, where: x > 1}}\n"
        "  out: {sink: {from: strong, alert: {email: a@example.org, subject: Storm}}}\n"
    )
    made: Any = alert_of(getattr(flow["out"], "alert"), flow=flow.name, node="out")  # noqa: B009
    assert (made.addresses, made.subject) == (("a@example.org",), "Storm")
    with pytest.raises(FlowError, match="alert of node 'out' of flow 'weather': webhook is a URL"):
        alert_of({"webhook": "file:///etc/passwd"}, flow="weather", node="out")
