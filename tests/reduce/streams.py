"""Streams of random jobs in files, and what a store says of the jobs afterwards."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from headwater.store import EmbeddedWriter
from headwater.testing.prov_graphs import (
    Element,
    disordered,
    duplicated,
    groups,
    messages,
    split,
)

END = '{"type": "end", "job": "J"}\n'

_NAMES = "(FROM entities UNION ALL FROM fresh_entities)"


def job(executions: int, seed: int) -> list[Element]:
    """A job of hundreds of edges, one of them a second.

    Executions of three functions on four nodes use what others made lately, several of them the
    same; some results go on into the next and are outputs all the same; some derivations and
    collections have no execution.
    """
    random = Random(seed)
    told: list[Element] = []
    pool = [f"in-{n}" for n in range(12)]
    running = "in-0"
    for n in range(executions):
        name, function, node = f"x{n}", f"f{n % 3}", f"n{random.randrange(4)}"
        used = random.sample(pool, random.randint(1, 3))
        if n % 10 == 9:
            used.append(running)
            running = f"total-{n}"
        made = [running] if n % 10 == 9 else [f"e{n}.{k}" for k in range(random.randint(1, 2))]
        told += [Element("used", name, entity, function, name, node) for entity in used]
        told += [
            Element("wasGeneratedBy", entity, name, function, name, node, output=entity == running)
            for entity in made
        ]
        if n % 7 == 3:
            told.append(Element("wasDerivedFrom", f"d{n}", random.choice(pool)))
            told.append(Element("hadMember", f"c{n}", f"d{n}"))
            made.append(f"c{n}")
        pool = [*pool, *made][-25:]
    return [
        Element(e.type, e.source, e.destination, e.function, e.execution, e.node, at, e.output)
        for at, e in enumerate(told)
    ]


def shuffled(told: Sequence[Element], seed: int) -> list[dict[str, Any]]:
    """The job as messages: half of it out of order, some of it twice, groups cut in two."""
    random = Random(seed)
    order = duplicated(disordered(told, 50, random), 10, random)
    return messages(split(groups(order), random))


def delayed(told: Sequence[Element], seed: int, within: int) -> list[dict[str, Any]]:
    """The job's elements, some of them twice, each so many seconds late at most."""
    random = Random(seed)
    again = random.sample(list(told), len(told) // 10)
    order = sorted([*told, *again], key=lambda e: (e.seconds or 0) + random.uniform(0, within))
    return [element.to_json() for element in order]


def longest_gap(told: Sequence[Element]) -> int:
    """The longest time (s) between two edges of one vertex that follow each other."""
    times: dict[object, list[int]] = defaultdict(list)
    for element in told:
        for vertex in element.edge:
            times[vertex].append(element.seconds or 0)
    gaps = (b - a for found in times.values() for a, b in pairwise(sorted(found)))
    return max(gaps, default=0)


def write(folder: Path, lines: Sequence[object], files: int, *, start: int = 0) -> None:
    """Put lines into so many files, the oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = [len(lines) * n // files for n in range(files + 1)]
    for n in range(files):
        some = lines[bounds[n] : bounds[n + 1]]
        put(folder, start + n, "".join(f"{json.dumps(line)}\n" for line in some))


def put(folder: Path, number: int, text: str) -> Path:
    """Put a text into a file, the number says which of the files is older."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{number:03d}.jsonl"
    file.write_text(text)
    then = time.time() - 1_000 + number
    os.utime(file, (then, then))
    return file


def dependencies_in(store: Path, name: str) -> set[tuple[str, str]]:
    """The dependencies that a store has of a job; none may be there twice."""
    with EmbeddedWriter.open(store) as writer, writer.working("reading") as connection:
        rows = connection.execute(
            "SELECT o.name, i.name FROM (SELECT job_no, output, input FROM dependencies UNION ALL "
            "SELECT job_no, output, input FROM fresh_dependencies) d "
            f"JOIN {_NAMES} o ON o.id = d.output JOIN {_NAMES} i ON i.id = d.input "
            "WHERE job_no = (SELECT job_no FROM jobs WHERE job = ?)",
            [name],
        ).fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)


def letters_in(folder: Path) -> list[dict[str, Any]]:
    """All dead letters of a folder."""
    return [
        json.loads(line)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text().split("\n")
        if line
    ]
