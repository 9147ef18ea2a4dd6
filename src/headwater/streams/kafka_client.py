"""The way to a Kafka broker: settings of a stream on a topic, connections, and errors in a line.

It is by `confluent-kafka`, which is installed with `headwater[kafka]` and imported here alone, when
a stream is on Kafka.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.streams.errors import LogUnreachable, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Producer

    from headwater.streams.declaration import Declaration

PREFIX = "kafka:"
SERVERS = "HEADWATER_KAFKA"
"""The variable that says where the broker is, for streams that are made without `bootstrap`."""
OPTIONS = ("bootstrap", "config", "timeout", "replication", "created")
"""What can be set of a stream on Kafka; `created` is noted by Headwater itself."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,240}")
_SILENT = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_TIMED_OUT_QUEUE"}
_ABSENT = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"}
_IDLE = 4
"""Connections for reading that are kept for the next reader."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a declaration says of its topic."""

    stream: str
    topic: str
    servers: str
    config: str | None = None
    timeout: float = 10.0
    """Seconds to wait for a broker that does not answer."""
    replication: int = -1
    created: frozenset[str] = frozenset()
    """What Headwater has created, and deletes with the stream: `topic`, `keys`."""
    what: str = "stream"
    """What users know it as."""

    @property
    def keys(self) -> str:
        """The topic of the keys that events were published under."""
        return f"{self.topic}.keys"

    @classmethod
    def of(cls, declared: Declaration) -> Settings:
        """The settings in a declaration; refuses what is wrong with them."""
        name, given = declared.name, declared.options
        topic = declared.log.removeprefix(PREFIX)
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise StreamError(
                f"log={declared.log!r} of stream {name!r} names no topic; write kafka: and up to "
                "240 letters, digits and '._-'"
            )
        for option in given:
            if option not in OPTIONS:
                raise StreamError(
                    f"option {option!r} of stream {name!r} is none of {', '.join(OPTIONS[:-1])}"
                )
        servers = given.get("bootstrap") or os.environ.get(SERVERS, "")
        if not servers:
            raise StreamError(
                f"stream {name!r} on Kafka needs the option bootstrap=HOST:PORT, or the variable "
                f"{SERVERS}"
            )
        timeout, replication = given.get("timeout", "10"), given.get("replication", "-1")
        try:
            numbers = float(timeout), int(replication)
        except ValueError:
            numbers = 0.0, 0
        if not 0 < numbers[0] < 3_600 or not (numbers[1] == -1 or numbers[1] > 0):
            raise StreamError(
                f"timeout={timeout} and replication={replication} of stream {name!r}: give seconds "
                "above 0, and 1 or more"
            )
        made = frozenset(filter(None, given.get("created", "").split(",")))
        return cls(name, topic, servers, given.get("config"), *numbers, made)

    def client(self) -> dict[str, Any]:
        """What every connection is told: the user's file of properties first."""
        found: dict[str, Any] = {}
        if self.config is not None:
            try:
                lines = Path(self.config).read_text("utf-8").splitlines()
            except OSError as error:
                raise StreamError(
                    f"config={self.config} of {self.what} {self.stream!r}: {error.strerror}"
                ) from error
            for line in lines:
                name, sign, value = line.partition("=")
                if sign and not name.lstrip().startswith("#"):
                    found[name.strip()] = value.strip()
        return {
            **found,
            "bootstrap.servers": self.servers,
            "client.id": "headwater",
            "log_level": 0,  # errors are raised, not printed
            "reconnect.backoff.max.ms": 1_000,
        }

    def told(self, error: Any, doing: str) -> StreamError:
        """What went wrong, in a line."""
        name = error.name() if hasattr(error, "name") else ""
        where = f"{self.what} {self.stream!r}"
        if name in _SILENT:
            return LogUnreachable(
                f"{where} can't {doing}: no Kafka broker answers at {self.servers} within "
                f"{self.timeout:g} s; start it, or correct bootstrap"
            )
        if name in _ABSENT:
            return StreamError(
                f"{where} can't {doing}: the topic {self.topic!r} is not at {self.servers}; remove "
                "the stream, or restore the topic"
            )
        text = error.str() if hasattr(error, "str") else str(error)
        return StreamError(f"{where} can't {doing}: {' '.join(str(text).split())}")

    @contextmanager
    def telling(self, doing: str) -> Iterator[None]:
        """Errors of Kafka inside become ours."""
        kafka = library()
        try:
            yield
        except kafka.KafkaException as error:
            raise self.told(error.args[0], doing) from error


def library() -> Any:
    """The package, or what to do without it."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise StreamError(
            "streams on Kafka need the package confluent-kafka: pip install 'headwater[kafka]'"
        ) from error
    return confluent_kafka


def administration() -> Any:
    """The part of the package that is about topics."""
    library()
    import confluent_kafka.admin

    return confluent_kafka.admin


class Client:
    """The connections of this process to a broker."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._process = settings, os.getpid()
        self._idle: list[Any] = []
        self._held: set[Any] = set()
        """All that are open. A forked child must not end those of its parent, which would crash it;
        so they are held here, whatever becomes of who uses them."""

    @property
    def is_mine(self) -> bool:
        """Whether the connections are of this process, and not of one that it was forked from."""
        return self._process == os.getpid()

    def release(self, made: Any) -> None:
        """Hold a connection no longer."""
        if self.is_mine:
            self._held.discard(made)

    @cached_property
    def admin(self) -> Any:
        """What makes and deletes topics."""
        return administration().AdminClient(self._settings.client())

    def producer(self, name: str, longest: int = 120) -> Producer:
        """One that writes transactions under a name; the first act is `init_transactions`.

        `longest` is how many seconds a transaction may take.
        """
        kafka = library()
        made: Producer = kafka.Producer(
            {
                **self._settings.client(),
                "transactional.id": name,
                # The longest that a killed process can hide what others publish meanwhile; the
                # next publisher of the same folder ends its transaction at once.
                "transaction.timeout.ms": longest * 1_000,
                "message.timeout.ms": 120_000,
                "linger.ms": 5,
                "batch.size": 1_000_000,
                "compression.type": "lz4",
            }
        )
        self._held.add(made)
        return made

    @contextmanager
    def consumer(self) -> Iterator[Any]:
        """One that reads what is committed; it is kept for the next."""
        try:
            consumer = self._idle.pop()
        except IndexError:
            consumer = self._made()
        try:
            yield consumer
        except GeneratorExit:
            self._keep(consumer)
            raise
        except BaseException:
            self._close(consumer)
            raise
        self._keep(consumer)

    def _keep(self, consumer: Any) -> None:
        if not self.is_mine:
            return
        consumer.unassign()
        if len(self._idle) < _IDLE:
            self._idle.append(consumer)
        else:
            self._close(consumer)

    def _close(self, consumer: Any) -> None:
        if self.is_mine:
            consumer.close()
            self.release(consumer)

    def _made(self) -> Any:
        made = library().Consumer(
            {
                **self._settings.client(),
                "group.id": "headwater",  # it must have one; it joins none and commits nothing
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",  # what has expired is told, not skipped
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 5,  # an end is to be seen soon
                "fetch.error.backoff.ms": 50,
                "max.poll.interval.ms": 86_400_000,
            }
        )
        self._held.add(made)
        return made


_clients: dict[tuple[str, str | None], Client] = {}
_lock = threading.Lock()
_inherited: list[Client] = []


def client(settings: Settings) -> Client:
    """The connections of this process to the broker of a stream."""
    with _lock:
        key = settings.servers, settings.config
        if key not in _clients:
            _clients[key] = Client(settings)
        return _clients[key]


def _forked() -> None:
    """A forked child has none of the threads of its parent's connections."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_clients.values())
    _clients.clear()


os.register_at_fork(after_in_child=_forked)
