"""A small mail server on loopback for tests: what it was given, and what it shall answer."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailServer:
    """A running server; `lines` are the commands of all sessions, `mails` what was accepted."""

    answers: dict[str, list[str]]
    """Replies by the start of a command, first come first used; after that it says yes."""
    tls: ssl.SSLContext | None
    place: str = ""
    lines: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)

    @property
    def messages(self) -> list[EmailMessage]:
        """The mails, read."""
        return [message_from_bytes(mail, policy=policy.default) for mail in self.mails]  # type: ignore[misc]


class _Session(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        told, encrypted = self.server.told, False
        self._say("220 here")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            told.lines.append(line)
            start = line.split()[0].upper()
            planned = next((a for name, a in told.answers.items() if line.startswith(name)), None)
            if planned:
                self._say(planned.pop(0))
            elif start == "EHLO":
                offered = ["AUTH PLAIN"] if encrypted else ["STARTTLS"] if told.tls else []
                names = ["here", *offered, "8BITMIME"]
                for name in names[:-1]:
                    self._say(f"250-{name}")
                self._say(f"250 {names[-1]}")
            elif start == "STARTTLS" and told.tls:
                self._say("220 go on")
                self.connection = told.tls.wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = (
                    self.connection.makefile("rb"),
                    self.connection.makefile("wb", 0),
                )
                encrypted = True
            elif start == "AUTH":
                self._say("235 welcome")
            elif start == "DATA":
                self._say("354 go on")
                mail = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    mail += part.removeprefix(b".")
                told.mails.append(mail)
                self._say("250 taken")
            elif start == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 yes")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    told: MailServer


@contextmanager
def serving(
    answers: dict[str, list[str]] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[MailServer]:
    """A mail server that accepts everything, but for what it is told to answer."""
    with _Server(("127.0.0.1", 0), _Session) as server:
        server.told = MailServer(answers or {}, tls)
        server.told.place = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.told
        finally:
            server.shutdown()
            thread.join()
