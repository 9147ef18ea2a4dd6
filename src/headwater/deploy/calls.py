"""Python functions that flow files name: found beside the file or installed, told apart by content.

A module beside the flow file travels with the function to Spark's workers; one that is installed is
imported there.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from headwater.errors import FlowError
from headwater.flow.determinism import deterministic, is_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType


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
        """What tells one version of a function's module from another; empty if it is installed."""
        file = self._beside(address.partition(":")[0])
        return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()

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
    """The module of a file, loaded anew when the file has changed."""
    content = hashlib.sha256(file.read_bytes()).hexdigest()
    known = _loaded.get(str(file))
    if known is not None and known[0] == content:
        return known[1]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _first(file.parent):
        sys.modules[name] = module
        spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    _loaded[str(file)] = (content, module)
    return module


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
