"""Python functions that flow files name: found beside the file or installed, told apart by content.

A module beside the flow file travels with the function to Spark's workers; one that is installed is
imported there.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import json
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from headwater.compose.kinds import Job
from headwater.errors import FlowError
from headwater.flow.determinism import deterministic, is_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from headwater.compose import Composition
    from headwater.compose.node import Node


class Calls:
    """The functions of one flow file."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def function(self, address: str, node: str) -> Callable[..., Any]:
        """The function of `module:function`, as it is now."""
        module_name, _, path = address.partition(":")
        module = self._module(module_name, address, node)
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            raise FlowError(
                f"node {node!r}: {address!r} is no function; module {module_name!r} has none of "
                "that name"
            )
        function: Callable[..., Any] = found
        return function

    def content(self, address: str) -> str:
        """What tells one version of a function's module from another; empty if it is installed.

        Modules beside it that it imports count, too.
        """
        told: dict[str, str] = {}
        self._contents(address.partition(":")[0], told)
        return "" if not told else _print(json.dumps(told).encode())

    def content_of_command(self, command: str) -> str:
        """The same of the files beside the flow file that a command names."""
        if self._folder is None:
            return ""
        named = sorted({word for word in words_of(command) if "/" not in word})
        files = [self._folder / word for word in named]
        return "".join(_print(file.read_bytes()) for file in files if file.is_file())

    def _contents(self, module: str, told: dict[str, str]) -> None:
        file = self._beside(module)
        if file is None or module in told:
            return
        told[module] = _print(file.read_bytes())
        for other in _imports(file):
            self._contents(other, told)

    def _beside(self, module: str) -> Path | None:
        if self._folder is None:
            return None
        base = self._folder.joinpath(*module.split("."))
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file
        return None

    def _module(self, name: str, address: str, node: str) -> ModuleType:
        file = self._beside(name)
        try:
            if file is None:
                return importlib.import_module(name)
            return _fresh(name, file)
        except Exception as error:
            raise FlowError(
                f"node {node!r}: {address!r} can't be imported: {type(error).__name__}: {error}"
            ) from error


_loaded: dict[str, tuple[str, ModuleType]] = {}


def _fresh(name: str, file: Path) -> ModuleType:
    """The module of a file; each version of a flow has files, and so modules, of its own."""
    content = _print(file.read_bytes())
    known = _loaded.get(str(file))
    if known is not None and known[0] == content:
        return known[1]
    for other in [m for m, made in sys.modules.items() if _is_beside(made, _folders)]:
        del sys.modules[other]
    _folders.add(str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _first(file.parent):
        sys.modules[name] = module
        spec.loader.exec_module(module)
    for made in [m for m in sys.modules.values() if _is_beside(m, {str(file.parent)})]:
        cloudpickle.register_pickle_by_value(made)  # type: ignore[no-untyped-call]
    _loaded[str(file)] = (content, module)
    return module


_folders: set[str] = set()
"""Where modules of flow files were loaded from."""


def _is_beside(module: object, folders: set[str]) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and str(Path(file).parent) in folders


def _imports(file: Path) -> list[str]:
    """The modules that a file imports, as it names them."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:
        return []  # said when it is imported
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found.append(node.module)
    return found


def _print(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def named_files(flow: Composition) -> set[str]:
    """What the commands of a flow's jobs may name as files: their words."""
    found = (command for node in flow.nodes.values() for command in commands_of(node))
    return {word for command in found for word in words_of(command)}


def commands_of(node: Node) -> list[str]:
    """The commands of a node."""
    if not isinstance(node, Job):
        return []
    steps = getattr(node, "steps", None) or {}
    found = [node.run, *(dict(step).get("run") for step in steps.values())]
    return [command for command in found if command is not None]


def words_of(command: str) -> list[str]:
    """The words of a command, as far as they can be told."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@contextmanager
def _first(folder: Path) -> Iterator[None]:
    """Imports that look into a folder first."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def with_static(function: Callable[..., Any], static: Mapping[str, Any], node: str) -> Any:
    """The function with its static values; declared deterministic if it was."""
    if not static:
        return function
    try:
        inspect.signature(function).bind(None, **static)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise FlowError(
            f"node {node!r}: {name} can't be called with events and {', '.join(static)}: {error}"
        ) from error
    except ValueError:
        pass  # written in C: it says nothing of itself
    bound = functools.partial(function, **static)
    return deterministic(bound) if is_declared(function) else bound
