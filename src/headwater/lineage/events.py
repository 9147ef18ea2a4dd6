"""OpenLineage events of a run, made of the official client's own classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
)

from headwater import __version__
from headwater.lineage.columns import DIRECT
from headwater.lineage.spec import PRODUCER, PROGRESS, STORE, jobs, moment, own_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from headwater.lineage.columns import Origins
    from headwater.lineage.describing import Description, End
    from headwater.lineage.naming import Dataset

_LONGEST = 2_000
"""Characters of an error that are told."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the batches of a run brought so far."""

    batch: int = -1
    batches: int = 0
    results: int = 0
    edges: int = 0
    records: int = 0
    watermark: datetime | None = None
    by_sink: Mapping[str, int] = field(default_factory=dict)
    by_source: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)


@attr.define
class StoreRunFacet(RunFacet):
    """Where the provenance of every record of a run is."""

    store: str
    flow: str
    sinks: list[str]
    ask: str

    @staticmethod
    def _get_schema() -> str:
        return own_schema("StoreRunFacet")


@attr.define
class StoreDatasetFacet(DatasetFacet):
    """Where the provenance of a dataset's records is."""

    store: str
    flow: str
    ask: str
    sink: str | None = None
    source: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return own_schema("StoreDatasetFacet")


@attr.define
class ProgressRunFacet(RunFacet):
    """What the batches of a run brought so far."""

    batch: int
    batches: int
    results: int
    edges: int
    records: int
    watermark: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return own_schema("ProgressRunFacet")


def event(
    kind: str,
    at: datetime,
    run: str,
    told: Description,
    progress: Progress,
    error: str | None = None,
) -> RunEvent:
    """One event. What never changes is in all of them: whoever missed the first still knows it."""
    facets: dict[str, Any] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=told.spark,
            name="spark",
            openlineageAdapterVersion=__version__,
            producer=PRODUCER,
        ),
        STORE: StoreRunFacet(
            store=told.store,
            flow=told.flow,
            sinks=[sink.name for sink in told.sinks],
            ask=told.sinks[0].ask if len(told.sinks) == 1 else _ask_any(told),
            producer=PRODUCER,
        ),
    }
    if told.parent is not None:
        facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(runId=told.parent.run),
            job=parent_run.Job(namespace=jobs(), name=told.parent.job),
            producer=PRODUCER,
        )
    if progress.batches:
        facets[PROGRESS] = _progress(progress)
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=error[:_LONGEST], programmingLanguage="PYTHON", producer=PRODUCER
        )
    return RunEvent(
        eventType=RunState[kind],
        eventTime=moment(at),
        run=Run(runId=run, facets=facets),
        job=Job(namespace=jobs(), name=told.job, facets={"jobType": _job_type(told)}),
        inputs=[_input(told, end, one, progress) for end in told.sources for one in end.datasets],
        outputs=[_output(told, end, one, progress) for end in told.sinks for one in end.datasets],
        producer=PRODUCER,
    )


def _ask_any(told: Description) -> str:
    return told.sinks[0].ask.replace(f"{told.flow}/{told.sinks[0].name}", "SINK", 1)


def _progress(progress: Progress) -> ProgressRunFacet:
    return ProgressRunFacet(
        batch=progress.batch,
        batches=progress.batches,
        results=progress.results,
        edges=progress.edges,
        records=progress.records,
        watermark=None if progress.watermark is None else moment(progress.watermark),
        producer=PRODUCER,
    )


def _job_type(told: Description) -> job_type_job.JobTypeJobFacet:
    return job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if told.streaming else "BATCH",
        integration="HEADWATER",
        jobType="FLOW" if told.parent is None else "UNIT",
        producer=PRODUCER,
    )


def _input(told: Description, end: End, dataset: Dataset, progress: Progress) -> InputDataset:
    rows, files = progress.by_source.get(end.name), progress.files.get(end.name)
    counted: dict[str, Any] = {}
    # A source of several topics is counted as one.
    if (rows is not None or files is not None) and len(end.datasets) == 1:
        counted["inputStatistics"] = (
            input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rowCount=rows, fileCount=files, producer=PRODUCER
            )
        )
    facets: dict[str, Any] = {
        "schema": _schema(end),
        STORE: StoreDatasetFacet(
            store=told.store, flow=told.flow, ask=end.ask, source=end.name, producer=PRODUCER
        ),
    }
    return InputDataset(dataset.namespace, dataset.name, facets=facets, inputFacets=counted)


def _output(told: Description, end: End, dataset: Dataset, progress: Progress) -> OutputDataset:
    facets: dict[str, Any] = {
        "schema": _schema(end),
        STORE: StoreDatasetFacet(
            store=told.store, flow=told.flow, ask=end.ask, sink=end.name, producer=PRODUCER
        ),
    }
    if end.lineage is not None:
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            fields={
                name: column_lineage_dataset.Fields(inputFields=_input_fields(told, origins))
                for name, origins in end.lineage.columns.items()
                if origins
            },
            dataset=_input_fields(told, end.lineage.rows),
            producer=PRODUCER,
        )
    counted: dict[str, Any] = {}
    if progress.batches:
        counted["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=progress.by_sink.get(end.name, 0), producer=PRODUCER
            )
        )
    return OutputDataset(dataset.namespace, dataset.name, facets=facets, outputFacets=counted)


def _schema(end: End) -> schema_dataset.SchemaDatasetFacet:
    return schema_dataset.SchemaDatasetFacet(
        fields=[_field(one) for one in end.fields], producer=PRODUCER
    )


def _field(field: Mapping[str, Any]) -> schema_dataset.SchemaDatasetFacetFields:
    return schema_dataset.SchemaDatasetFacetFields(
        name=field["name"],
        type=field["type"],
        fields=[_field(part) for part in field.get("fields", ())] or None,
    )


def _input_fields(told: Description, origins: Origins) -> list[column_lineage_dataset.InputField]:
    return [
        column_lineage_dataset.InputField(
            namespace=dataset.namespace,
            name=dataset.name,
            field=column,
            transformations=[_transformation(way) for way in sorted(ways)],
        )
        for (source, column), ways in sorted(origins.items())
        for dataset in told.where.get(source, ())
    ]


def _transformation(way: str) -> column_lineage_dataset.Transformation:
    kind = "DIRECT" if way in DIRECT else "INDIRECT"
    return column_lineage_dataset.Transformation(type=kind, subtype=way)
