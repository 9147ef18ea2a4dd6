"""What runs a step that is a Python function, in a process of its own.

`python -m headwater.runtimes.jobs.call call|spark module:function`: the event and the parameters
are read from the files that the environment names, and the result is written as lines of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.runtimes.jobs.events import encoded


def found(place: str) -> Callable[..., Any]:
    """The function of `module:function`."""
    module, _, name = place.partition(":")
    made: Any = importlib.import_module(module)
    for part in name.split("."):
        made = getattr(made, part)
    if not callable(made):
        raise TypeError(f"{place} is not a function")
    return made  # type: ignore[no-any-return]


def rows(result: Any) -> list[Mapping[str, Any]]:
    """The events of what a function returned: nothing, one, several, or a Spark data frame."""
    if result is None:
        return []
    if isinstance(result, Mapping):
        return [result]
    if hasattr(result, "toLocalIterator"):
        return [row.asDict(recursive=True) for row in result.toLocalIterator()]
    if isinstance(result, Iterable) and not isinstance(result, str | bytes):
        made = list(result)
        if all(isinstance(each, Mapping) for each in made):
            return made
    raise TypeError(
        f"a job's function returns an event (a dict), several, or None, not {type(result).__name__}"
    )


def called(
    place: str, given: Any, inputs: bool, parameters: Mapping[str, Any], *first: Any
) -> list[Mapping[str, Any]]:
    """What a function makes of what its step reads: `f(event, **inputs, **parameters)`."""
    function = found(place)
    if not inputs:
        return rows(function(*first, given, **parameters))
    made_before = {name: value for name, value in given.items() if name != "event"}
    return rows(function(*first, given["event"], **made_before, **parameters))


def main(kind: str, place: str) -> None:
    """Read, call, write."""
    with open(os.environ["HEADWATER_EVENT"], encoding="utf-8") as file:
        given = json.load(file)
    with open(os.environ["HEADWATER_PARAMETERS"], encoding="utf-8") as file:
        parameters = json.load(file)
    inputs = os.environ.get("HEADWATER_INPUTS") == "1"
    if kind == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.builder.appName(os.environ["HEADWATER_EXECUTION"]).getOrCreate()
        made = called(place, given, inputs, parameters, session)
    else:
        made = called(place, given, inputs, parameters)
    with open(os.environ["HEADWATER_OUTPUT"], "w", encoding="utf-8") as file:
        file.writelines(f"{encoded(row)}\n" for row in made)


if __name__ == "__main__":
    main(*sys.argv[1:])
