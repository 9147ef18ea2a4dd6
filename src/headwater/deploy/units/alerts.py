"""Alerts at run time: the events of a sink, posted to a webhook or sent by e-mail.

Delivery is at least once: what failed, or was cut off, is sent again by whoever called. Each
request and each mail has a key made of its events, so that a receiver can tell what came twice.
"""

from __future__ import annotations

import base64
import json
import math
import os
import smtplib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from headwater.compose.structures import Alerts
from headwater.compose.values import Wrong
from headwater.errors import FlowError, RunError
from headwater.service.calls import Calls, Failed, Final, Policy
from headwater.service.posting import send

SERVER, SENDER = "HEADWATER_SMTP", "HEADWATER_SMTP_FROM"
USER, PASSWORD = "HEADWATER_SMTP_USER", "HEADWATER_SMTP_PASSWORD"

PER_REQUEST = 100
"""Events in one request to a webhook."""
PER_MAIL = 20
"""Events that a mail shows; of the others it says how many there are."""
LONGEST, WIDEST = 20, 500
"""Items of an array, and characters of a text, that a mail shows."""
PATIENCE = Policy(concurrency=1, retries=3, timeout=10.0, backoff=0.5)
"""How often, and how long, something is tried before the alert has failed."""


Numbered = tuple[int, Mapping[str, Any]]
"""An event, after its id."""


class AlertFailed(RunError):
    """An alert that did not get through."""


class Alert(Protocol):
    """Where the events of a sink go."""

    def send(self, events: Sequence[Mapping[str, Any]], ids: Sequence[int], version: int) -> None:
        """Tell of events, with their ids and the version of the flow; raises `AlertFailed`."""


def alert_of(
    alert: Mapping[str, Any], *, flow: str, node: str, patience: Policy = PATIENCE
) -> Alert:
    """What the `alert` of a sink says: a webhook, or mail to addresses."""
    try:
        told = Alerts().read(alert)
    except Wrong as error:
        text = f"alert of node {node!r} of flow {flow!r} {error}"
        raise FlowError(text.replace(" : ", ": ", 1)) from error
    if "webhook" in told:
        return Webhook(flow, node, told["webhook"], patience)
    return Mail(flow, node, told["email"], told.get("subject"), patience)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Events as JSON, posted to a URL: `{flow, node, version, events: [{event_id, …columns}]}`."""

    flow: str
    node: str
    url: str
    patience: Policy = PATIENCE

    def send(self, events: Sequence[Mapping[str, Any]], ids: Sequence[int], version: int) -> None:
        """A request for each hundred events; redirects are not followed."""
        told = _numbered(events, ids)
        for at in range(0, len(told), PER_REQUEST):
            part = told[at : at + PER_REQUEST]
            body = {
                "flow": self.flow,
                "node": self.node,
                "version": version,
                "events": [{"event_id": id_, **_others(event)} for id_, event in part],
            }
            key = {"Idempotency-Key": key_of(self.flow, self.node, ids[at : at + PER_REQUEST])}
            failed = _tried(
                self.patience, partial(send, self.url, body, self.patience.timeout, key)
            )
            if failed is not None:
                # The whole URL may be a secret: whoever knows it can post there.
                where = f"{urlsplit(self.url).scheme}://{urlsplit(self.url).netloc}"
                raise AlertFailed(
                    f"alert {self.flow}/{self.node}: {len(told) - at} of {len(told)} events did "
                    f"not reach {where}: {failed}; see to the receiver, or correct the webhook"
                )


@dataclass(frozen=True, slots=True)
class Mail:
    """Events by e-mail, through the server that HEADWATER_SMTP names."""

    flow: str
    node: str
    addresses: tuple[str, ...]
    subject: str | None = None
    patience: Policy = PATIENCE

    def send(self, events: Sequence[Mapping[str, Any]], ids: Sequence[int], version: int) -> None:
        """One mail, with the first events and how many more there are."""
        told = _numbered(events, ids)
        if not told:
            return
        server = os.environ.get(SERVER, "").strip() or "localhost:25"
        failed = _tried(self.patience, lambda: self._deliver(server, told, version))
        if failed is not None:
            raise AlertFailed(
                f"alert {self.flow}/{self.node}: no mail of {_count(told)} went through "
                f"{server}: {failed}; set {SERVER}=host:port to a mail server that takes it"
            )

    def _deliver(self, server: str, told: Sequence[Numbered], version: int) -> None:
        message = self._message(told, version)
        _hand_over(server, message, self.addresses, self.patience.timeout)

    def _message(self, told: Sequence[Numbered], version: int) -> EmailMessage:
        sender = _header(os.environ.get(SENDER, "")) or "headwater@localhost"
        key = key_of(self.flow, self.node, [id_ for id_, _ in told])
        host = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
        message = EmailMessage()
        message["Subject"] = _header(
            self.subject or f"alert {self.flow}/{self.node}: {_count(told)}"
        )
        message["From"] = sender
        message["To"] = ", ".join(self.addresses)
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{blake2b(key.encode(), digest_size=16).hexdigest()}@{host}>"
        message["Auto-Submitted"] = "auto-generated"
        lines = [f"{_count(told)} of flow {self.flow}, node {self.node}, version {version}", ""]
        for id_, event in told[:PER_MAIL]:
            columns = [f"  {in_a_line(str(n))}: {in_a_line(v)}" for n, v in event.items()]
            lines += [f"event {id_}", *columns, ""]
        if len(told) > PER_MAIL:
            lines += [f"… and {len(told) - PER_MAIL} more", ""]
        message.set_content("\n".join(lines))
        return message


def key_of(flow: str, node: str, ids: Sequence[int]) -> str:
    """What tells a delivery from others: the same whenever these events are sent again.

    >>> key_of("weather", "alerts", [7, 8, 9])
    'weather/alerts/7/9'
    """
    return f"{quote(flow)}/{quote(node)}/{ids[0]}/{ids[-1]}"


def _numbered(events: Sequence[Mapping[str, Any]], ids: Sequence[int]) -> list[Numbered]:
    return list(zip(map(int, ids), events, strict=True))


def _others(event: Mapping[str, Any]) -> dict[str, Any]:
    """The columns; `event_id` is the event's own, whatever a column of that name says."""
    told: dict[str, Any] = plain(event)
    told.pop("event_id", None)
    return told


def _count(told: Sequence[object]) -> str:
    return f"{len(told)} event{'' if len(told) == 1 else 's'}"


def _tried(patience: Policy, what: Callable[[], object]) -> str | None:
    """Why something failed, after as many tries as there are; None when it went well."""
    calls: Calls[None] = Calls(lambda _: what(), patience)
    calls.start(b"", None)
    while not (done := calls.finished(patience.timeout)):
        pass
    ((_, outcome),) = done
    if outcome.reason is None:
        return None
    return f"{outcome.reason} ({outcome.attempts} tr{'y' if outcome.attempts == 1 else 'ies'})"


def _header(text: str) -> str:
    """A text that stays in its line of a mail's head."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:200]


def _hand_over(
    server: str, message: EmailMessage, addresses: Sequence[str], timeout: float
) -> None:
    """Give a mail to a server; what trying again would not change is `Final`."""
    host, port = _place(server)
    user, password = os.environ.get(USER), os.environ.get(PASSWORD, "")
    try:
        with smtplib.SMTP(host, port, timeout=timeout) as smtp:
            if user:
                # A password never goes over the line as it is: no TLS, no login.
                smtp.starttls(context=ssl.create_default_context())
                smtp.login(user, password)
            refused = smtp.send_message(message, to_addrs=list(addresses))
    except smtplib.SMTPRecipientsRefused as error:
        refused = error.recipients
    except smtplib.SMTPResponseException as error:
        said = f"{error.smtp_code} {_said(error.smtp_error)}"
        raise (Failed if error.smtp_code < 500 else Final)(said) from error
    except (smtplib.SMTPNotSupportedError, ssl.SSLError) as error:
        raise Final(str(error)) from error
    except (smtplib.SMTPException, OSError) as error:
        raise Failed(str(error) or type(error).__name__) from error
    if refused:
        told = "; ".join(f"{who}: {code} {_said(why)}" for who, (code, why) in refused.items())
        # Those who were not refused have it: another try would send it to them again.
        again = len(refused) == len(addresses) and all(code < 500 for code, _ in refused.values())
        raise (Failed if again else Final)(f"refused for {told}")


def _place(server: str) -> tuple[str, int]:
    """Host and port of `host:port`, `host` or `[address]:port`."""
    try:
        parts = urlsplit(f"//{server}")
        host, port = parts.hostname, 25 if parts.port is None else parts.port
    except ValueError as error:
        raise Final(f"{server!r} is not host:port") from error
    if not host or server.rpartition("@")[0] or parts.path:
        raise Final(f"{server!r} is not host:port")
    return host, port


def _said(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def plain(value: Any) -> Any:
    """A value as JSON can say it: times in ISO 8601, text for what JSON lacks.

    >>> plain({"at": date(2025, 1, 2), "dbz": [1.5, float("nan")]})
    {'at': '2025-01-02', 'dbz': [1.5, 'NaN']}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else json.dumps(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case list() if value and all(isinstance(item, tuple) for item in value):  # Arrow's map
            return {str(plain(name)): plain(item) for name, item in value}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def in_a_line(value: Any) -> str:
    """A value as a mail shows it: in one line, long arrays and texts cut short.

    >>> print(in_a_line([*range(30)]))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "… 10 more"]
    """
    told = _short(plain(value))
    if isinstance(told, str) and told.isprintable():
        return told
    # What can't be printed is written as an escape: it neither breaks nor hides a line.
    text = json.dumps(told, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(told)


def _short(value: Any) -> Any:
    match value:
        case str() if len(value) > WIDEST:
            return f"{value[:WIDEST]}… {len(value) - WIDEST} more characters"
        case dict():
            return {name: _short(item) for name, item in value.items()}
        case list():
            kept = [_short(item) for item in value[:LONGEST]]
            return [*kept, f"… {len(value) - LONGEST} more"] if len(value) > LONGEST else kept
        case _:
            return value
