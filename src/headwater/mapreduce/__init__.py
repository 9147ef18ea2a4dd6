"""Streaming map-reduce: files become map tasks, whose outputs a sliding window keeps for reduces.

The package can be called: `hw.mapreduce(...)` is `headwater.mapreduce.running.mapreduce`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package and a function under one name: importing the one must not hide the other."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        from headwater.mapreduce.running import mapreduce

        return mapreduce(*args, **more)


sys.modules[__name__].__class__ = _Callable
