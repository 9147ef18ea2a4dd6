"""What the whole must have given, in plain Python, over all versions, restarts and units.

The streams from outside must hold what was acknowledged, each event once. Of readings none ever
comes late, so blackouts and anomalies follow from the readings alone, with their records. Reports
may be late after their producer's clock jumped: of each stopped vehicle, the records are checked.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headwater as hw
from headwater import streams
from headwater.examples.smart_grid import FEW, HIGH
from tests.soak.checking import Found
from tests.soak.publishing import Supply

SAMPLE = 300
"""Results whose provenance is asked for across streams."""


def check_whole(
    home: Path,
    reports: tuple[Supply, int],
    readings: tuple[Supply, int],
    wild: list[dict[str, Any]],
    found: Found,
    seed: int = 0,
) -> None:
    """Everything that can be said without knowing of batches."""
    registry = streams.open(home / "streams")
    chance = random.Random(seed)
    with_store = hw.open(home / "flows" / "store")
    try:
        rows: dict[str, list[dict[str, Any]]] = {}
        for supply, chunks in (reports, readings):
            rows[supply.stream] = acknowledged(registry, supply, chunks, found)
        tamed(registry, wild, found)
        grid(registry, with_store, rows["readings"], found, chance)
        stopped(registry, with_store, rows["reports"], found, chance)
    finally:
        with_store.close()


def acknowledged(
    registry: streams.Streams, supply: Supply, chunks: int, found: Found
) -> list[dict[str, Any]]:
    """Every event that was acknowledged is there once, as it was sent, and no other."""
    expected = [row for number in range(chunks) for row in supply.events(number)]
    expected.append(supply.last(chunks))
    there = registry.table(supply.stream).to_pylist()
    want = Counter(repr(sorted(row.items())) for row in map(_utc, expected))
    have = Counter(repr(sorted(row.items())) for row in map(_utc, there))
    lines = [f"{n} times missing: {row}" for row, n in (want - have).items()]
    lines += [f"{n} times too many: {row}" for row, n in (have - want).items()]
    found.say(f"stream {supply.stream}", lines)
    found.counts["events acknowledged"] += len(expected)
    return [_utc(row) for row in there]


def tamed(registry: streams.Streams, wild: list[dict[str, Any]], found: Found) -> None:
    """Hostile events that were taken are there once, as they were sent; no other is."""
    want = Counter(repr((row["n"], row["text"], row["v"])) for row in wild)
    there = registry.table("wild").to_pylist()
    have = Counter(repr((row["n"], row["text"], row["v"])) for row in there)
    lines = [f"{n} times missing: {row[:80]}" for row, n in (want - have).items()]
    lines += [f"{n} times too many: {row[:80]}" for row, n in (have - want).items()]
    found.say("stream wild", lines)
    passed = registry.table("tamed").to_pylist() if "tamed" in registry else []
    given = Counter((row["n"], row["text"]) for row in passed)
    found.say("stream tamed", _apart(Counter((r["n"], r["text"]) for r in wild), given))
    found.counts["hostile events taken"] += len(wild)


def grid(
    registry: streams.Streams,
    store: hw.Store,
    readings: list[dict[str, Any]],
    found: Found,
    chance: random.Random,
) -> None:
    """Blackouts and anomalies of all days that have ended, and their records."""
    days: dict[tuple[datetime, int], list[dict[str, Any]]] = defaultdict(list)
    for row in readings:
        days[_day(row["ts"]), row["meter"]].append(row)
    newest = max(day for day, _ in days)
    totals = {k: sum(r["value"] for r in rows) for k, rows in days.items() if k[0] < newest}
    dark: dict[datetime, list[int]] = defaultdict(list)
    for (day, meter), total in totals.items():
        if total == 0:
            dark[day].append(meter)
    blackouts = {day: meters for day, meters in dark.items() if len(meters) > FEW}
    there = registry.table("blackout").to_pylist()
    want = Counter((day, len(meters)) for day, meters in blackouts.items())
    have = Counter((_moment(row["window"]["start"]), row["meters"]) for row in there)
    found.say("blackouts", _apart(want, have))
    anomalies = Counter(
        (day, meter, total, row["value"])
        for (day, meter), total in totals.items()
        for row in days[day, meter]
        if total > HIGH and row["hour"] == 23 and abs(total - row["value"]) > HIGH
    )
    odd = registry.table("anomaly").to_pylist()
    given = Counter((_day(r["window"]), r["meter"], r["total"], r["value"]) for r in odd)
    found.say("anomalies", _apart(anomalies, given))
    found.counts["blackouts and anomalies, in plain Python"] += len(there) + len(odd)
    for row in _sample(there, chance):
        day = _moment(row["window"]["start"])
        ids = {r["id"] for m in blackouts.get(day, ()) for r in days[day, m]}
        _traced(store, "blackout", row, ids, "readings", found)
    for row in _sample(odd, chance):
        ids = {r["id"] for r in days[_day(row["window"]), row["meter"]]}
        _traced(store, "anomaly", row, ids, "readings", found)


def stopped(
    registry: streams.Streams,
    store: hw.Store,
    reports: list[dict[str, Any]],
    found: Found,
    chance: random.Random,
) -> None:
    """Each stopped vehicle stood at one position for a whole window, by its four records."""
    by_id = {row["tid"]: row for row in reports}
    there = registry.table("stopped").to_pylist()
    found.counts["stopped vehicles"] += len(there)
    seen = Counter((row["vid"], row["window"]["start"]) for row in there)
    found.say("stopped", [f"{key} {n} times" for key, n in seen.items() if n > 1])
    for row in _sample(there, chance):
        start = _moment(row["window"]["start"])
        came = store.backward(entity=f"hw:streams/stopped/{row['event_id']}")["id"].to_pylist()
        records = [by_id[int(each.rsplit("/", 1)[1])] for each in came]
        fits = all(
            r["vid"] == row["vid"]
            and r["pos"] == row["lo"] == row["hi"]
            and r["speed"] == 0
            and start <= r["ts"] < start + timedelta(seconds=120)
            for r in records
        )
        if len({r["tid"] for r in records}) != 4 or not fits:
            found.say(f"stopped {row['event_id']}", [f"does not follow from {sorted(came)}"])
        found.counts["results traced across streams"] += 1


def _traced(
    store: hw.Store, stream: str, row: dict[str, Any], ids: set[int], source: str, found: Found
) -> None:
    entity = f"hw:streams/{stream}/{row['event_id']}"
    came = Counter(store.backward(entity=entity)["id"].to_pylist())
    found.say(entity, _apart(Counter(f"hw:streams/{source}/{each}" for each in ids), came))
    found.counts["results traced across streams"] += 1


def _sample(rows: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    return chance.sample(rows, min(SAMPLE, len(rows)))


def _apart(want: Counter[Any], have: Counter[Any]) -> list[str]:
    lines = [f"{n} times missing: {each}" for each, n in (want - have).items()]
    return lines + [f"{n} times too many: {each}" for each, n in (have - want).items()]


def _moment(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _day(time: datetime) -> datetime:
    return _moment(time).replace(hour=0, minute=0, second=0, microsecond=0)


def _utc(row: dict[str, Any]) -> dict[str, Any]:
    return {k: _moment(v) if isinstance(v, datetime) else v for k, v in row.items()}
