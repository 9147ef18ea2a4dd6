"""`hw.Flow`: sources, steps and sinks, and the start of a run."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import StructType

from headwater import kafka_errors
from headwater.errors import FlowError, HeadwaterError
from headwater.flow import kafka, nodes, render
from headwater.flow.callsite import callsite
from headwater.flow.frame import Frame
from headwater.flow.reach import Reach
from headwater.flow.references import Attribute, attributes
from headwater.flow.sourcing import source_node
from headwater.lowering.plain import Plain
from headwater.names import PREFIX
from headwater.session import adopt_or_start, require_own
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from headwater.capture.run import Run
    from headwater.capture.sink import BatchInfo


class Flow:
    """A dataflow from sources to sinks whose results know their source records.

    >>> flow = Flow("traffic")  # doctest: +SKIP
    >>> reports = flow.source(
    ...     "reports",
    ...     format="parquet",
    ...     path="data/lr",  # doctest: +SKIP
    ...     schema=SCHEMA,
    ...     event_time="ts",
    ...     watermark="0 seconds",
    ...     id="tid",
    ... )
    >>> flow.sink("stopped", reports.filter("speed = 0"))  # doctest: +SKIP
    >>> flow.start(store="prov/", available_now=True).wait()  # doctest: +SKIP
    """

    def __init__(self, name: str, spark: SparkSession | None = None) -> None:
        _require_name("flow", name)
        self.name = name
        self.spark = require_own(spark or adopt_or_start())
        self._plain = Plain(self.spark)
        self._steps: dict[str, nodes.Node] = {}
        self._counts: Counter[str] = Counter()
        self._named: set[str] = set()
        self._seen: dict[str, tuple[Attribute, ...]] = {}
        self.notes: dict[str, dict[str, Any]] = {}
        """What the store is to know of sources and sinks beside what they are, by name."""
        self.observed: dict[str, str] = {}
        """Steps whose rows Spark counts, with the names under which progress tells them."""

    # --- what it is made of -------------------------------------------------------------------

    @property
    def sources(self) -> dict[str, nodes.Source]:
        """The sources by name."""
        return {s: n for s, n in self._steps.items() if isinstance(n, nodes.Source)}

    @property
    def sinks(self) -> dict[str, nodes.Sink]:
        """The sinks by name."""
        return {s: n for s, n in self._steps.items() if isinstance(n, nodes.Sink)}

    def source(
        self,
        name: str,
        *,
        df: DataFrame | None = None,
        format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        schema: StructType | str | None = None,
        options: Mapping[str, Any] | None = None,
        stream: bool = True,
        event_time: str | None = None,
        watermark: str | None = None,
        id: str | Sequence[str] | None = None,
        keep: nodes.Keep | None = None,
    ) -> Frame:
        """Records from a Spark format or from any DataFrame, streaming or not, traced by id.

        `id` names the column or columns that identify a record; without it a Parquet record goes
        by its file and row, one of Kafka by its topic, partition and offset, any other by its
        content. `keep` says which records' contents the
        store keeps: "none" (the default for files, which are read again when asked for),
        "contributing" (the default for anything else), "alive" (the same, but a record that reached
        nothing is dropped in the very batch in which it expires) or "all". `stream=False` reads a
        path once.
        """
        site = callsite()
        self._require_new("source", name, site)
        parsed = self._parse_schema(schema) if isinstance(schema, str) else schema
        node = source_node(
            name,
            site,
            df=df,
            format=format,
            path=None if path is None else os.fspath(path),
            schema=parsed,
            options=options,
            stream=stream,
            event_time=event_time,
            watermark=watermark,
            id=id,
            keep=keep,
        )
        self._require_own_topics(node)
        return self._frame(node)

    def sink(self, name: str, frame: Frame, write: Any = None) -> Frame:
        """Results to trace, kept in the store under this name.

        `write` also hands them on: a function of a DataFrame (with `result_id` first) and the
        batch's number, or a dict of a Spark writer: `{"format": "parquet", "path": "out/"}`.
        """
        from headwater.capture.write import check_write

        site = callsite()
        self._require_new("sink", name, site)
        if frame.flow is not self:
            raise FlowError(f"sink {name!r} at {site}: needs a frame of flow {self.name!r}")
        counts = Counter(c.casefold() for c in frame.columns)
        doubled = [c for c in frame.columns if counts[c.casefold()] > 1]
        if doubled:
            raise FlowError(
                f"sink {name!r} at {site}: two columns are called {doubled[0]!r}; rename one"
            )
        check_write(write, f"sink {name!r} at {site}")
        return self._frame(nodes.Sink(step=name, site=site, inputs=(frame._node,), write=write))

    def sql(self, query: str, /, *, step: str | None = None, **frames: Frame | DataFrame) -> Frame:
        """The rows of a SELECT in Spark's SQL, made by the steps that Frame methods would add.

        FROM names sources, steps that were given a name (`frame.named`) and `frames`, given by
        keyword; a DataFrame among those can be joined. `step` names the query's last step.
        """
        from headwater.flow.sql import translate

        if step is not None:
            self._require_new("step", step, callsite())
        frame = translate(self, query, frames)
        return frame if step is None else frame.named(step)

    def start(
        self,
        store: str | os.PathLike[str],
        checkpoint: str | os.PathLike[str] | None = None,
        capture: str | Mapping[str, Sequence[str]] = "auto",
        available_now: bool = False,
        trigger: str | None = None,
        on_batch: Callable[[BatchInfo], None] | None = None,
        live: bool | Literal["steps"] = False,
        expiry: str | None = None,
        idle_after: str | None = None,
        lineage: bool | None = None,
    ) -> Run:
        """Run the flow: results and provenance go to the store, a transaction per micro-batch.

        `capture` says how provenance is captured: "eager" (ids of the source records travel with
        the rows), "intervals" (two positions do) or "ancestors" (nothing does), both made exact by
        replay; "none" (results only); or "auto", the cheapest of them that is exact, sink by sink.
        A dict such as `{"eager": ["alerts"]}` names the sinks of each mode, the others have none.
        `available_now` stops when what is there now has been processed;
        `trigger` is the time between batches. A flow without a streaming source runs once.
        The checkpoint is by default a directory inside the store.
        `live` keeps the graph of records and results as the flow runs, with a label on each record
        that can reach no more; "steps" adds the rows of the steps that have a name of your choice.
        `expiry` says when a record is past: "tight", once the last window or partner that could
        hold it is, or "ananke", by the sum of all window sizes on the way. `idle_after` is the
        silence after which a source no longer holds the watermark back.
        `lineage` tells of the run in OpenLineage; by default it does where that is configured.
        """
        from headwater import lineage as openlineage
        from headwater.capture.start import start

        return start(
            self,
            store=os.fspath(store),
            checkpoint=None if checkpoint is None else os.fspath(checkpoint),
            capture=capture,
            available_now=available_now,
            trigger=trigger,
            on_batch=on_batch,
            live=live,
            expiry=expiry,
            idle_after=idle_after,
            listener=openlineage.listener(self, os.fspath(store), lineage),
        )

    def reach(self, source: nodes.Node, sinks: Sequence[nodes.Node]) -> Reach:
        """How far the records of a source, or the rows of a step, reach by the paths to sinks."""
        return Reach.of(source, sinks, lambda node: self._plain.lower(node).schema)

    def explain(self) -> None:
        """Print the steps: what each does, from where in the code, and which are run twice."""
        from headwater.capture.choosing import described

        print("\n".join([self.describe(), "capture auto", *described(self)]))

    def describe(self, *ends: nodes.Node) -> str:
        """The text that `explain` prints."""
        return render.as_text(f"flow {self.name}", render.model(ends or self._ends()))

    def to_mermaid(self) -> str:
        """The flow as a Mermaid flowchart, which GitHub and many editors draw."""
        return render.as_mermaid(render.model(self._ends()))

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, sources={list(self.sources)}, sinks={list(self.sinks)})"

    # --- how steps are added ------------------------------------------------------------------

    def _ends(self) -> list[nodes.Node]:
        if self.sinks:
            return list(self.sinks.values())
        used = {above.step for node in self._steps.values() for above in node.inputs}
        return [node for step, node in self._steps.items() if step not in used]

    def _add(
        self, kind: type[nodes.Node], inputs: tuple[nodes.Node, ...], **parameters: Any
    ) -> Frame:
        step = self._next_step(kind.kind)
        return self._frame(kind(step=step, site=callsite(), inputs=inputs, **parameters))

    def _static(self, df: DataFrame) -> Frame:
        if df.isStreaming:
            raise FlowError("join: a streaming DataFrame must come in by flow.source(name, df=…)")
        return self._frame(nodes.Static(step=self._next_step("static"), site=callsite(), df=df))

    def _frame(self, node: nodes.Node) -> Frame:
        self._checked(node)
        self._steps[node.step] = node
        return Frame(self, node)

    def _checked(self, node: nodes.Node) -> DataFrame:
        """The node's frame in plain Spark; what Spark says of it in one line if it can't be."""
        try:
            df = self._plain.lower(node)
            columns = df.columns
        except HeadwaterError:
            raise
        except (AnalysisException, ParseException) as error:
            said = kafka_errors.explained(error) or one_line(error)
            raise FlowError(f"{node.kind} at {node.site}: {said}") from error
        reserved = [c for c in columns if c.startswith(PREFIX)]
        if reserved:
            raise FlowError(
                f"{node.kind} at {node.site}: column {reserved[0]!r} has the prefix __hw_, "
                "which is reserved; use another name"
            )
        if isinstance(node, nodes.Explode) and not set(node.names) <= set(columns):
            raise FlowError(
                f"{node.kind} at {node.site}: exploding a map is not supported; "
                "use F.explode(F.map_entries(…))"
            )
        return df

    def _attributes(self, node: nodes.Node) -> tuple[Attribute, ...]:
        if node.step not in self._seen:
            above = [self._attributes(n) for n in node.inputs]
            self._seen[node.step] = attributes(node, self._plain.lower(node), above)
        return self._seen[node.step]

    def _rename(self, node: nodes.Node, step: str) -> nodes.Node:
        _require_name("step", step)
        if step in self._steps:
            raise FlowError(f"flow {self.name!r} already has a step {step!r}; choose another name")
        if any(node in other.inputs for other in self._steps.values()):
            raise FlowError(f"name step {node.step!r} before other steps use it")
        if isinstance(node, nodes.Source | nodes.Sink):
            raise FlowError(f"{node.kind} {node.step!r} has its name already")
        self._steps.pop(node.step, None)
        renamed = replace(node, step=step)
        self._named.add(step)
        self._checked(renamed)
        self._steps[step] = renamed
        return renamed

    def _next_step(self, kind: str) -> str:
        self._counts[kind] += 1
        step = f"{kind}-{self._counts[kind]}"
        return step if step not in self._steps else self._next_step(kind)

    def _parse_schema(self, text: str) -> StructType:
        try:
            parsed = StructType.fromDDL(text)
        except (ParseException, AnalysisException) as error:
            raise FlowError(f"schema {text!r} at {callsite()}: {one_line(error)}") from error
        if not isinstance(parsed, StructType):
            raise FlowError(f"schema {text!r} at {callsite()}: name the columns: 'id bigint, …'")
        return parsed

    def _require_own_topics(self, node: nodes.Source) -> None:
        """Refuse a topic that another source reads: the messages of batches are told by topic."""
        for other in self.sources.values() if node.format == kafka.FORMAT else ():
            shared = set(kafka.topics(dict(other.options))) & set(kafka.topics(dict(node.options)))
            if other.format == kafka.FORMAT and shared:
                raise FlowError(
                    f"source {node.name!r} at {node.site}: source {other.name!r} reads topic "
                    f"{min(shared)!r} already; use its frame for both"
                )

    def _require_new(self, what: str, name: str, site: str) -> None:
        _require_name(what, name)
        if name in self._steps:
            taken = self._steps[name]
            raise FlowError(
                f"{what} {name!r} at {site}: flow {self.name!r} already has a {taken.kind} of that "
                f"name, from {taken.site}; choose another"
            )


def _require_name(what: str, name: str) -> None:
    if not name or not all(c.isalnum() or c in "_-." for c in name):
        raise FlowError(f"{what} name {name!r}: use letters, digits, '_', '-' and '.'")
