"""Values with parts: ports, alerts, schemas, cardinalities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headwater.compose.addresses import Url
from headwater.compose.cardinality import Cardinality
from headwater.compose.frozen import Table
from headwater.compose.types.schemas import SchemaError, parse
from headwater.compose.values import (
    Names,
    Text,
    Value,
    Wrong,
    shown,
)
from headwater.compose.violations import nearest

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
_PORT = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*)(?:\.([A-Za-z][A-Za-z0-9_]*))?$")


@dataclass(frozen=True, slots=True)
class Port:
    """A named input: which node's output comes in there."""

    name: str
    node: str
    output: str | None = None
    """None is the node's own rows; a service also has `failures`."""

    @property
    def target(self) -> str:
        """The output as `from` names it."""
        return self.node if self.output is None else f"{self.node}.{self.output}"

    @property
    def usual(self) -> str:
        """The name that the port has when none is given."""
        return self.node if self.output is None else f"{self.node}_{self.output}"


@dataclass(frozen=True, slots=True)
class Ports(Value):
    """Inputs: a node's name, a list of them, or `{port: node}`."""

    name: ClassVar[str] = "nodes"

    def read(self, given: Any) -> tuple[Port, ...]:
        """Refuse what names no node; whether it exists is for the rules to say."""
        if isinstance(given, Mapping):
            return tuple(_port(target, name) for name, target in given.items())
        items = given if isinstance(given, list | tuple) else [given]
        return tuple(item if isinstance(item, Port) else _port(item) for item in items)

    def write(self, value: tuple[Port, ...]) -> Any:
        """As short as it can be said."""
        if any(port.name != port.usual for port in value):
            return {port.name: port.target for port in value}
        targets = [port.target for port in value]
        return targets[0] if len(targets) == 1 else targets

    def schema(self) -> dict[str, Any]:
        """A name, names, or ports with names."""
        one = {"type": "string", "pattern": _PORT.pattern}
        return {
            "anyOf": [
                one,
                {"type": "array", "items": one},
                {"type": "object", "additionalProperties": one},
            ]
        }


def _port(target: Any, name: Any = None) -> Port:
    found = _PORT.fullmatch(target) if isinstance(target, str) else None
    if found is None:
        raise Wrong(f"names a node, or node.failures, not {shown(target)}")
    port = Port("", found[1], found[2])
    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name)):
        raise Wrong(f"has a port {shown(name)}; ports are called as columns are")
    return Port(port.usual if name is None else name, found[1], found[2])


@dataclass(frozen=True, slots=True)
class Alerts(Value):
    """Where an alert goes: `{webhook: URL}` or `{email: [address], subject: text}`."""

    name: ClassVar[str] = "alert"

    def read(self, given: Any) -> Table[Any]:
        """Refuse an alert to nowhere."""
        if not isinstance(given, Mapping):
            raise Wrong(f"is {{webhook: URL}} or {{email: address}}, not {shown(given)}")
        return Table(self._read(given))

    def _read(self, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for key in given:
            if key not in _ALERT:
                raise Wrong(f"has no key {key!r}{nearest(key, _ALERT)}")
        if ("webhook" in given) == ("email" in given):
            raise Wrong("goes either to a webhook or to email addresses")
        if "subject" in given and "webhook" in given:
            raise Wrong("has a subject, which is for email")
        for key, value in given.items():
            try:
                yield key, _ALERT[key].read(value)
            except Wrong as error:
                raise Wrong(f": {key} {error}") from error

    def write(self, value: Any) -> Any:
        """Each part as its own type writes it."""
        return {key: _ALERT[key].write(part) for key, part in value.items()}

    def schema(self) -> dict[str, Any]:
        """One object for each way."""
        ways = (("webhook",), ("email", "subject"))
        return {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {key: _ALERT[key].schema() for key in keys},
                    "required": [keys[0]],
                    "additionalProperties": False,
                }
                for keys in ways
            ]
        }


_ALERT: dict[str, Value] = {
    "webhook": Url(),
    "email": Names(Text("an address", r"^[^@\s]+@[^@\s]+$", "ops@example.org")),
    "subject": Text(),
}


@dataclass(frozen=True, slots=True)
class Schemas(Value):
    """Names with types as Spark writes them: `scan bigint, at timestamp`."""

    name: ClassVar[str] = "schema"

    def read(self, given: Any) -> str:
        """Refuse what Spark could not read either."""
        text = Text("names with types", example="scan bigint, at timestamp").read(given)
        try:
            parse(text)
        except SchemaError as error:
            raise Wrong(f"{error}; write names with types such as 'scan bigint'") from error
        return text

    def schema(self) -> dict[str, Any]:
        """A text."""
        return {"type": "string", "minLength": 3}


@dataclass(frozen=True, slots=True)
class Cardinalities(Value):
    """A declared cardinality: `1`, `1/3`, `<1` or `unknown`."""

    name: ClassVar[str] = "cardinality"

    def read(self, given: Any) -> Cardinality:
        """Refuse what is no ratio."""
        found = Cardinality.of(given)
        if found is None:
            raise Wrong(f"is a ratio such as 1, 1/3 or <1, or unknown, not {shown(given)}")
        return found

    def write(self, value: Cardinality) -> Any:
        """A whole number where it is one."""
        text = str(value)
        return int(text) if text.isdigit() else text

    def schema(self) -> dict[str, Any]:
        """A number or a ratio."""
        ratio = r"^(<?\s*[0-9]+(\.[0-9]+)?(/[0-9]+)?|unknown)$"
        return {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": ratio},
            ]
        }
