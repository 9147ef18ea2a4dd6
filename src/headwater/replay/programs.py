"""The flows of a store, as nodes that can be run again.

A flow that runs in this process is at hand. For any other process it is saved in the store when it
starts: nodes as they are, Spark's expressions as the JVM serialises them, frames of static sides as
files beside the store.
"""

from __future__ import annotations

import io
import os
import pickle
import weakref
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pyspark
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession

from headwater.errors import StoreError
from headwater.flow import nodes
from headwater.flow.expressions import catalyst, from_catalyst
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.session import adopt_or_start

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headwater.flow.flow import Flow

Sinks = dict[str, nodes.Sink]

STATIC = "static"

_at_hand: weakref.WeakValueDictionary[tuple[str, str], Flow] = weakref.WeakValueDictionary()


def remember(store: str | os.PathLike[str], flow: Flow) -> None:
    """Have a flow of this process at hand for replays from its store."""
    _at_hand[os.path.realpath(store), flow.name] = flow


def at_hand(store: str | os.PathLike[str], flow: str) -> Flow | None:
    """The flow as this process has it, if it does."""
    return _at_hand.get((os.path.realpath(store), flow))


def saved(sinks: Mapping[str, nodes.Sink], store: Path) -> bytes:
    """A flow's sinks in a form that another process can load."""
    statics = {
        id(node.df): node.step
        for sink in sinks.values()
        for node in sink.upstream()
        if isinstance(node, nodes.Static)
    }
    out = io.BytesIO()
    _Pickler(out, statics, store).dump(dict(sinks))  # type: ignore[no-untyped-call]
    return pickle.dumps((pyspark.__version__, out.getvalue()))


def loaded(program: bytes, store: Path, flow: str) -> Sinks:
    """The sinks of a saved flow."""
    version, body = pickle.loads(program)
    if version != pyspark.__version__:
        raise StoreError(
            f"flow {flow!r} was saved under Spark {version}, this is {pyspark.__version__}: open "
            "the store with the flow itself, headwater.open(path, flow=flow)"
        )
    try:
        sinks: Sinks = _Unpickler(io.BytesIO(body), store, adopt_or_start()).load()
    except (pickle.PickleError, ImportError, AttributeError, OSError) as error:
        raise StoreError(
            f"flow {flow!r} can't be loaded from the store ({error}): open the store with the flow "
            "itself, headwater.open(path, flow=flow)"
        ) from error
    return sinks


class _Pickler(cloudpickle.Pickler):
    """Nodes, with Spark's objects as references."""

    def __init__(self, out: io.BytesIO, statics: Mapping[int, str], store: Path) -> None:
        super().__init__(out)  # type: ignore[no-untyped-call]
        self._statics = statics
        self._store = store

    def persistent_id(self, obj: Any) -> tuple[str, Any] | None:
        """What stands for an object of Spark's."""
        if isinstance(obj, Column):
            utils = scala_object(spark_jvm().org.apache.spark.util, "Utils")
            return "column", bytes(utils.serialize(catalyst(obj)))
        if isinstance(obj, SparkSession):
            return "session", None
        if isinstance(obj, DataFrame):
            step = self._statics.get(id(obj))
            return "frame", None if step is None else self._save(step, obj)
        return None

    def _save(self, step: str, df: DataFrame) -> str:
        folder = self._store / STATIC
        folder.mkdir(exist_ok=True)
        file = folder / f"{step}.parquet"
        temporary = file.with_suffix(".tmp")
        pq.write_table(df.toArrow(), temporary)
        temporary.replace(file)
        return file.name


class _Unpickler(pickle.Unpickler):
    def __init__(self, body: io.BytesIO, store: Path, spark: SparkSession) -> None:
        super().__init__(body)
        self._store = store
        self._spark = spark

    def persistent_load(self, reference: tuple[str, Any]) -> Any:
        """The object that a reference stands for."""
        kind, value = reference
        if kind == "column":
            utils = scala_object(spark_jvm().org.apache.spark.util, "Utils")
            return from_catalyst(utils.deserialize(value))
        if kind == "frame" and value is not None:
            return self._spark.createDataFrame(pq.read_table(self._store / STATIC / value))
        return self._spark if kind == "session" else None
