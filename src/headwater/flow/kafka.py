"""Topics of Kafka as a source: what its options mean, and which columns its records have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.flow.nodes import Source

FORMAT = "kafka"
SERVERS = "kafka.bootstrap.servers"
PREFIX = "kafka_"
"""What the names of columns begin with that come from a message, not from its value."""
METADATA: dict[str, DataType] = {
    "key": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "headers": ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    ),
}
VALUES = ("json", "text", "binary")
FAIL = "fail"
"""In place of a folder for dead letters: the flow fails at a message that can't be decoded."""
PARTITION_BITS, TOPIC_BITS, OFFSET_BITS = 12, 7, 44
"""How ids are packed, lowest bits first."""

_OWN = ("value", "metadata", "dead_letters", "config")
_JSON = "json."
_SECRET = ("password", "jaas", "secret", "ssl.keystore.key", "sasl.oauthbearer.token")
_DEFAULTS = {"startingoffsets": ("startingOffsets", "earliest")}


@dataclass(frozen=True, slots=True)
class Topics:
    """What a source says of its topics, by its options and the columns of its records."""

    name: str
    schema: StructType
    options: Mapping[str, str]

    @classmethod
    def of(cls, source: Source) -> Topics:
        """Those of a source of a flow."""
        return cls(source.name, source.schema, dict(source.options))

    @property
    def names(self) -> tuple[str, ...]:
        """The topics; a topic's place among them is its number in ids."""
        return topics(self.options)

    @property
    def value(self) -> str:
        """What a message's value is: json, text or binary."""
        return self.options.get("value", "json")

    @property
    def metadata(self) -> tuple[str, ...]:
        """Which parts of a message beside its value are columns."""
        return tuple(m for m in METADATA if PREFIX + m in _listed(self.options, self.schema))

    @property
    def own(self) -> StructType:
        """The columns that come from a message's value."""
        taken = {PREFIX + name for name in self.metadata}
        return StructType([field for field in self.schema if field.name not in taken])

    @property
    def dead_letters(self) -> str | None:
        """Where messages go that can't be decoded, if it was said."""
        return self.options.get("dead_letters")

    @property
    def json_options(self) -> dict[str, str]:
        """Options of Spark's reader of JSON."""
        return {k.removeprefix(_JSON): v for k, v in self.options.items() if k.startswith(_JSON)}

    @property
    def connecting(self) -> dict[str, str]:
        """Options that say how the broker is spoken to; those of a file are read anew."""
        given = {k: v for k, v in self.options.items() if k.lower().startswith("kafka.")}
        if "headers" in self.metadata:
            given["includeHeaders"] = "true"
        if (file := self.options.get("config")) is not None:
            given |= {f"kafka.{k}": v for k, v in properties(Path(file), self.name).items()}
        return given

    @property
    def streaming(self) -> dict[str, str]:
        """The options of Spark's streaming source."""
        rest = {
            k: v
            for k, v in self.options.items()
            if k not in _OWN and not k.startswith(_JSON) and not k.lower().startswith("kafka.")
        }
        return {**self.connecting, **rest}

    def __str__(self) -> str:
        which = "topic" if len(self.names) == 1 else "topics"
        return f"{which} {', '.join(self.names)} at {self.options.get(SERVERS, 'its broker')}"


def declared(
    where: str,
    schema: StructType | None,
    options: Mapping[str, Any],
    named: tuple[str, ...],
) -> tuple[StructType, dict[str, str]]:
    """A source's columns and options, or an error that says what is wrong with them.

    `named` are columns that other parameters name: those of a message among them are added.
    """
    given = {k: _text(v) for k, v in options.items()}
    lower = {k.lower(): k for k in given}
    if SERVERS not in lower:
        raise FlowError(f"{where}: Kafka needs options={{'{SERVERS}': 'HOST:PORT', …}}")
    if "subscribepattern" in lower:
        raise FlowError(
            f"{where}: subscribePattern gives topics no lasting numbers for ids; name them: "
            "options={'subscribe': 'a,b'}"
        )
    if "failondataloss" in lower and given[lower["failondataloss"]].lower() == "false":
        raise FlowError(f"{where}: failOnDataLoss=false would lose records silently; leave it out")
    for key in given:
        if any(word in key.lower() for word in _SECRET):
            raise FlowError(
                f"{where}: option {key!r} is a secret, which the store would keep; put it in a "
                "file of lines name=value and give options={'config': FILE}"
            )
    for low, (key, value) in _DEFAULTS.items():
        if low not in lower:
            given[key] = value
    found = _require_topics(where, given)
    value = given.get("value", "json")
    if value not in VALUES:
        raise FlowError(f"{where}: option value={value!r} is not one of {', '.join(VALUES)}")
    if "config" in given:
        properties(Path(given["config"]), where)
    if schema is None and value == "json":
        raise FlowError(f"{where}: give schema=, the columns of the JSON in {found[0]!r}")
    own = schema or StructType([StructField("value", _PLAIN[value])])
    if value != "json" and (len(own) != 1 or own[0].dataType != _PLAIN[value]):
        kind = _PLAIN[value].simpleString()
        raise FlowError(f"{where}: value={value!r} gives one {kind} column: schema='value {kind}'")
    return _with_metadata(where, own, given, named), given


def topics(options: Mapping[str, str]) -> tuple[str, ...]:
    """The topics that options name, in their order."""
    lower = {k.lower(): v for k, v in options.items()}
    if "subscribe" in lower:
        return tuple(one for topic in lower["subscribe"].split(",") if (one := topic.strip()))
    return tuple(json.loads(lower["assign"])) if "assign" in lower else ()


def properties(file: Path, where: str) -> dict[str, str]:
    """The properties in a file, `name=value` a line."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise FlowError(f"{where}: can't read config {file}: {error.strerror}") from error
    pairs = [line.partition("=") for line in lines if line.strip() and line.strip()[0] not in "#!"]
    return {key.strip().removeprefix("kafka."): value.strip() for key, _, value in pairs}


_PLAIN: dict[str, DataType] = {"text": StringType(), "binary": BinaryType()}


def _require_topics(where: str, options: Mapping[str, str]) -> tuple[str, ...]:
    try:
        found = topics(options)
    except ValueError as error:
        raise FlowError(f"{where}: option assign is not JSON: {error}") from error
    if not found:
        raise FlowError(f"{where}: Kafka needs its topics: options={{'subscribe': 'a,b', …}}")
    if len(set(found)) < len(found):
        raise FlowError(f"{where}: a topic is named twice among {', '.join(found)}")
    if len(found) > 1 << TOPIC_BITS:
        raise FlowError(
            f"{where}: {len(found)} topics, and ids have room for {1 << TOPIC_BITS}; make several "
            "sources and unite them"
        )
    return found


def _with_metadata(
    where: str, own: StructType, options: dict[str, str], named: tuple[str, ...]
) -> StructType:
    said = options.get("metadata", "")
    wanted = [] if said == "false" else [one.strip() for one in said.split(",") if one.strip()]
    if said == "true":
        wanted = list(METADATA)
    unknown = [one for one in wanted if one not in METADATA]
    if unknown:
        raise FlowError(
            f"{where}: option metadata={said!r}: a message has no {unknown[0]!r}; it has "
            f"{', '.join(METADATA)}"
        )
    present = set(own.fieldNames())
    asked = [one for one in METADATA if PREFIX + one in named and PREFIX + one not in present]
    added = [m for m in METADATA if m in wanted or m in asked]
    clash = [PREFIX + m for m in added if PREFIX + m in present]
    if clash:
        raise FlowError(
            f"{where}: column {clash[0]!r} of the schema has the name of a message's own; rename it"
        )
    if added:
        options["metadata"] = ",".join(added)
    fields = [StructField(f.name, f.dataType, True) for f in own]
    return StructType([*fields, *(StructField(PREFIX + m, METADATA[m]) for m in added)])


def _listed(options: Mapping[str, str], schema: StructType) -> set[str]:
    said = {one.strip() for one in options.get("metadata", "").split(",")}
    return {PREFIX + one for one in said} & set(schema.fieldNames())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
