"""Keys and static values of a node, changed by words such as `level=30`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from headwater.compose.frozen import thawed
from headwater.compose.node import keys
from headwater.compose.violations import CompositionError
from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.compose import Composition


def tuned(flow: Composition, name: str, words: Sequence[str]) -> Composition:
    """The flow with other keys, or static values, of a node.

    >>> from headwater.compose import Composition
    >>> flow = Composition("f").source("a", stream="a").filter("b", "a", where="x > 1")
    >>> tuned(flow, "b", ["where=x > 2"])["b"].where
    'x > 2'
    """
    node = flow[name]
    known = {each.name: each.attribute for each in keys(type(node))}
    changes: dict[str, Any] = {}
    static = thawed(getattr(node, "static", {}))
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise FlowError(f"{word!r} is not KEY=VALUE, such as level=30")
        value = _value(key, text)
        if key in known:
            changes[known[key]] = value
        elif "static" in known:
            changes["static"] = static = {**static, key: value}
        else:
            have = ", ".join(known)
            raise FlowError(f"node {name!r} is a {node.kind}, which has no {key!r}; it has {have}")
    try:
        return flow.replace(name, replace(node, **changes))
    except CompositionError as error:
        told = "; ".join(each.text for each in error.violations)
        raise FlowError(f"node {name!r}: {told}") from error


def _value(key: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FlowError(f"{key}={text}: the value is not YAML: {error}") from error
