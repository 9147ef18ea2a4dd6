"""YAML and JSON into plain values with the line of each key, and plain values into YAML."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from headwater.compose.violations import CompositionError, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML without libyaml: slower, the same otherwise
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

_DEEPEST = 100
"""Levels that a flow file has at most."""
_SPARE = 10_000
"""Values that aliases may add. Without them a text has no more values than characters."""

Spot = tuple[str | int, ...]
"""Where in a file a value stands: the keys and positions that lead there."""


@dataclass(slots=True)
class Read:
    """What a text says, where each part stands, and which keys stand there twice."""

    value: Any = None
    lines: dict[Spot, int] = field(default_factory=dict)
    doubled: list[Spot] = field(default_factory=list)
    most: int = 0


_TAG = "tag:yaml.org,2002:"
# YAML 1.2's plain words. In 1.1, which PyYAML reads, `on` is true and 10:30 is a number.
_PLAIN = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
)


class _Loader(_SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _name, _words, _first in _PLAIN:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"^(?:{_words})$"), list(_first))
_Dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]


def load(text: str, file: str | None) -> Read:
    """A text of YAML or JSON; raises `CompositionError` when it is neither."""
    if text.lstrip().startswith("{"):
        try:
            told = Read(json.loads(text))
        except (ValueError, RecursionError):
            pass  # YAML may begin with a brace too
        else:
            if _is_deep(told.value):
                raise _unread("this is nested too deeply to be a flow", file, None)
            return _with_lines(told, text)
    try:
        tree = _tree(text)
        read = Read(most=len(text) + _SPARE)
        read.value = _value(tree, (), read) if tree is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        said = error.problem or error.context or "no YAML"
        raise _unread(f"this is no YAML: {said}", file, line) from error
    except yaml.YAMLError as error:
        raise _unread(f"this is no YAML: {' '.join(str(error).split())}", file, None) from error
    except RecursionError as error:
        raise _unread("this is nested too deeply to be a flow", file, None) from error
    except _TooLarge as error:
        raise _unread(str(error), file, None) from error
    return read


def _unread(text: str, file: str | None, line: int | None) -> CompositionError:
    return CompositionError([Violation("file", text, file=file, line=line)])


class _TooLarge(ValueError):
    pass


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        lists = (each for each in level if isinstance(each, dict | list))
        level = [
            one for each in lists for one in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _require_flat(text: str) -> None:
    """Refuse what is nested so deeply that libyaml, which recurses, would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise _TooLarge("this is nested too deeply to be a flow")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _tree(text: str) -> yaml.Node | None:
    """The nodes of a document, with their lines."""
    _require_flat(text)
    loader = _Loader(text)
    try:
        tree: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return tree


def _with_lines(told: Read, text: str) -> Read:
    """JSON is nearly YAML: its lines are YAML's where that can be read."""
    try:
        tree = _tree(text)
        if tree is not None:
            placed = Read(most=len(text) + _SPARE)
            _value(tree, (), placed)
            told.lines, told.doubled = placed.lines, placed.doubled
    except (yaml.YAMLError, RecursionError, _TooLarge):
        pass
    return told


def _value(node: Any, at: Spot, read: Read) -> Any:
    read.lines[at] = node.start_mark.line + 1
    if len(read.lines) > read.most:
        raise _TooLarge("this has more aliases than a flow has use for; write them out")
    if isinstance(node, yaml.MappingNode):
        return dict(_pairs(node, at, read))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*at, number), read) for number, item in enumerate(node.value)]
    return _scalar(node)


def _pairs(node: Any, at: Spot, read: Read) -> Iterator[tuple[Any, Any]]:
    seen: set[Any] = set()
    for name_node, value_node in node.value:
        if not isinstance(name_node, yaml.ScalarNode):
            mark = name_node.start_mark
            raise yaml.constructor.ConstructorError(None, None, "a key is a name", mark)
        name = _scalar(name_node)
        if name in seen:
            read.doubled.append((*at, name))
        seen.add(name)
        value = _value(value_node, (*at, name), read)
        # The line of a key is where its name stands, its value may begin below.
        read.lines[(*at, name)] = name_node.start_mark.line + 1
        yield name, value


def _scalar(node: Any) -> Any:
    text = node.value
    match node.tag.removeprefix(_TAG):
        case "bool":
            return text.lower() == "true"
        case "null":
            return None
        case "int":
            try:
                return int(text, 16) if text.lower().startswith("0x") else int(text)
            except ValueError as error:  # Python reads so many digits and no more
                raise yaml.constructor.ConstructorError(
                    None, None, "a number of too many digits", node.start_mark
                ) from error
        case "float":
            return float(text)
        case "str":
            return text
        case tag:
            raise yaml.constructor.ConstructorError(
                None, None, f"the tag {tag} is not for flow files", node.start_mark
            )


def dump(value: Any, width: int = 100, flow: bool | None = None) -> str:
    """Plain values as YAML; `flow` puts them between braces."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=width,
        default_flow_style=flow,
    )
    return text.removesuffix("...\n")
