"""Topics of streams: made with a stream where they are missing, and deleted with it if so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.streams.declaration import exists, load
from headwater.streams.errors import StreamError
from headwater.streams.kafka_client import Settings, administration, client, library
from headwater.streams.kafka_reading import partitions, require_one

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.streams.declaration import Declaration

_EVENTS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
}
_KEYS = {"cleanup.policy": "compact"}


def prepare(registry: Path, made: Declaration) -> Declaration:
    """Make what topics are missing; the declaration then says which, and where the broker is."""
    if "created" in made.options:
        raise StreamError("option 'created' of a stream is noted by Headwater; leave it out")
    settings = Settings.of(made)
    _require_free(registry, settings)
    created = [
        what
        for what, topic, config in (
            ("topic", settings.topic, _EVENTS),
            ("keys", settings.keys, _KEYS),
        )
        if _create(settings, topic, config)
    ]
    options = {**made.options, "bootstrap": settings.servers}
    if created:
        options["created"] = ",".join(created)
    return replace(made, options=options)


def discard(declared: Declaration) -> None:
    """Delete the topics that were made for a stream; others stay as they are."""
    settings = Settings.of(declared)
    names = {"topic": settings.topic, "keys": settings.keys}
    gone = [names[what] for what in sorted(settings.created)]
    if not gone:
        return
    kafka = library()
    with settings.telling("have its topics deleted"):
        told = client(settings).admin.delete_topics(gone, request_timeout=settings.timeout)
        for done in told.values():
            try:
                done.result()
            except kafka.KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                    raise


def _create(settings: Settings, topic: str, config: dict[str, str]) -> bool:
    """Make a topic; false if it was there, with one partition."""
    kafka = library()
    wanted = administration().NewTopic(
        topic, num_partitions=1, replication_factor=settings.replication, config=config
    )
    with settings.telling("be made"):
        number = partitions(settings, topic)
        if number is None:
            told = client(settings).admin.create_topics([wanted], request_timeout=settings.timeout)
            try:
                told[topic].result()
                return True
            except kafka.KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise
            number = partitions(settings, topic)
        require_one(settings, topic, number or 1)
    return False


def _require_free(registry: Path, settings: Settings) -> None:
    """Refuse a topic that is another stream of the registry: it would be removed with that one."""
    found = registry.iterdir() if registry.is_dir() else ()
    for folder in found:
        if folder.name.startswith((".", "_")) or not exists(folder):
            continue
        other = load(folder)
        same = other.log == f"kafka:{settings.topic}"
        if same and Settings.of(other).servers == settings.servers:
            raise StreamError(f"topic {settings.topic!r} is stream {other.name!r} already; read it")
