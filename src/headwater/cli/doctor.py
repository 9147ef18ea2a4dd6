"""`headwater doctor`: whether this machine can run Headwater, and what to do if not."""

from __future__ import annotations

import json as encoder
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.output import Json, console, print_json

JAVA_MIN = 17
MEMORY_MIN = 4 << 30
DISK_MIN = 2 << 30
PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "duckdb", "xxhash")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; `advice` says what to do about a problem."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def doctor(
    store: Annotated[
        Path | None,
        typer.Argument(metavar="STORE", help="A store to look at as well.", show_default=False),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="A broker of Kafka to look at as well."),
    ] = None,
    delta: Annotated[
        Path | None,
        typer.Option(metavar="PLACE", help="A place for a lake to look at: a folder, or a URL."),
    ] = None,
    json: Json = False,
) -> None:
    """Check Java, Python, Spark, memory and disk, and a store if you name one.

    Exit code 1 if anything is wrong.

    Example: `headwater doctor prov --json`
    """
    from rich.markup import escape

    found = []
    out = console()
    for check in checks(store, kafka, delta):
        found.append(check)
        if not json:
            mark = "[green]ok     [/]" if check.ok else "[red]problem[/]"
            advice = f" → {check.advice}" if check.advice and not check.ok else ""
            line = escape(f"{check.name:<10} {check.found}{advice}")
            out.print(f"{mark}  {line}", soft_wrap=True)
    if json:
        print_json([encoder.dumps([asdict(check) for check in found], indent=1), "\n"])
    if not all(check.ok for check in found):
        raise typer.Exit(1)


def checks(
    store: Path | None, kafka: str | None = None, delta: Path | None = None
) -> Iterator[Check]:
    """All checks, the slow ones last."""
    yield Check(
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} ({sys.executable})",
        "use Python 3.11 or newer",
    )
    yield java()
    for package in PACKAGES:
        yield _package(package)
    yield memory()
    cores = os.cpu_count() or 1
    yield Check("cores", True, str(cores))
    yield _disk(store)
    yield spark()
    if store is not None:
        yield opens(store)
    if kafka is not None:
        yield connector()
        yield answers(kafka)
    if delta is not None:
        yield lake(delta)


def java() -> Check:
    """The Java that Spark would start: JAVA_HOME's, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"install Java {JAVA_MIN} or newer (openjdk-{JAVA_MIN}-jre-headless), or set JAVA_HOME"
    if path is None:
        return Check("java", False, "not found", advice)
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return Check("java", False, f"{path} does not run", advice)
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', answer.stderr + answer.stdout)
    if version is None:
        return Check("java", False, f"{path} does not say its version", advice)
    full = version.group(0).removeprefix('version "').removesuffix('"')
    return Check("java", int(version.group(1)) >= JAVA_MIN, f"{full} ({path})", advice)


def memory() -> Check:
    """The machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Check(
        "memory",
        total >= MEMORY_MIN,
        _size(total),
        f"Spark wants {_size(MEMORY_MIN)} or more; set spark.driver.memory lower for small flows",
    )


def spark() -> Check:
    """Whether a Spark session starts, and a Python worker in it."""
    from headwater.cli.spark import session

    try:
        with session(light=True) as started:
            rows = started.range(3).mapInArrow(lambda batches: batches, "id bigint").count()
            return Check("spark", rows == 3, f"{started.version} starts and runs Python workers")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return Check(
            "spark",
            False,
            f"a session does not start: {_first_line(error)}",
            "see to the problems above; PYSPARK_PYTHON and SPARK_HOME must be unset or right",
        )


def connector() -> Check:
    """Whether Spark can read and write topics."""
    from headwater.cli.spark import session
    from headwater.errors import HeadwaterError
    from headwater.flow.jvm import spark_jvm
    from headwater.kafka_errors import connector as advice

    try:
        with session(light=True) as started:
            jvm = spark_jvm()
            lookup = jvm.org.apache.spark.sql.execution.datasources.DataSource
            lookup.lookupDataSource("kafka", started._jsparkSession.sessionState().conf())
            return Check("connector", True, "Spark has its connector to Kafka")
    except HeadwaterError as error:
        return Check("connector", False, _first_line(error), advice())
    except Exception:  # noqa: BLE001 - whatever Spark raises, it did not find it
        return Check("connector", False, "Spark has no connector to Kafka", advice())


def answers(servers: str, timeout: float = 10) -> Check:
    """Whether a broker of Kafka answers."""
    advice = "pip install 'headwater[kafka]'"
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return Check("kafka", False, "confluent-kafka is not installed", advice)
    try:
        told = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=timeout)
    except KafkaException:
        return Check("kafka", False, f"{servers} does not answer", "start it, or correct HOST:PORT")
    return Check("kafka", True, f"{servers}: {len(told.topics)} topics")


def lake(place: Path) -> Check:
    """Whether a lake can be at a place: the package is there, and files can be written."""
    from headwater.errors import HeadwaterError
    from headwater.store.lake.place import OWN, PREFIX, Place, library

    try:
        version = library().__version__
    except HeadwaterError:
        return Check("delta", False, "deltalake is not installed", "pip install 'headwater[delta]'")
    advice = "give a folder or URL that may be written to, and its configuration"
    try:
        found = Place.of(f"{PREFIX}{str(place).removeprefix(PREFIX)}")
    except HeadwaterError as error:
        return Check("delta", False, _first_line(error), advice)
    try:
        filesystem, root = found.filesystem()
        there = filesystem.get_file_info(root).type.name != "NotFound"
        trial = f"{root}/{OWN}/trial"
        filesystem.create_dir(f"{root}/{OWN}", recursive=True)
        with filesystem.open_output_stream(trial) as file:
            file.write(b"written by headwater doctor")
        filesystem.delete_file(trial)
        if not there:
            filesystem.delete_dir(root)
    except (OSError, ValueError) as error:
        return Check("delta", False, f"{found} can't be written: {_first_line(error)}", advice)
    return Check("delta", True, f"{found} can be written; deltalake {version}")


def opens(path: Path) -> Check:
    """Whether a store opens, and what is in it."""
    from headwater.errors import HeadwaterError
    from headwater.store import open_reader

    try:
        with closing(open_reader(path)) as store:
            version = store.query("SELECT value FROM meta WHERE key = 'format'")
            counts = store.query(
                "SELECT count(*) AS batches, coalesce(sum(results), 0)::BIGINT AS results, "
                "coalesce(sum(edges), 0)::BIGINT AS edges FROM batches"
            )
    except HeadwaterError as error:
        return Check("store", False, _first_line(error), "name the folder that a flow ran into")
    facts = ", ".join(f"{count:,} {name}" for name, count in counts.to_pylist()[0].items())
    return Check("store", True, f"{path}: format {version[0][0].as_py()}, {facts}")


def _package(name: str) -> Check:
    try:
        return Check(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", "run make setup, or pip install headwater")


def _disk(store: Path | None) -> Check:
    place = Path(str(store or Path.cwd()).removeprefix("delta:")).absolute()
    while not place.exists():
        place = place.parent
    free = {path: shutil.disk_usage(path).free for path in {place, Path(tempfile.gettempdir())}}
    return Check(
        "disk",
        min(free.values()) >= DISK_MIN,
        ", ".join(f"{_size(size)} free in {path}" for path, size in sorted(free.items())),
        f"free {_size(DISK_MIN)} or more: state, checkpoints and stores are written there",
    )


def _size(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
