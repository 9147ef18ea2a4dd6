"""The work itself: from files in a directory to results in the stream, one step at a time.

Each step goes on from what the journal says, and can be killed at any point:

1. files that are whole are *taken*: they get a number and a time;
2. those not mapped yet are *mapped*, together; outputs are cached, failures become dead letters;
3. mapped files come into the window in order, and each change of it is a reduce that is *decided*;
4. decided reduces are *done* in order: into the store, then into the stream.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headwater.mapreduce.scanning import Scanner, seen_at
from headwater.mapreduce.windows import arrival, changes, next_expiry
from headwater.streams.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from headwater.mapreduce.journal import Input, Journal, Reduce
    from headwater.mapreduce.outcomes import Outcomes
    from headwater.mapreduce.results import Mapped, Reduced
    from headwater.mapreduce.settings import Settings

log = logging.getLogger("headwater")

TOGETHER = 16
"""Files that are mapped in one job at most, so that results do not wait for a long backlog."""


class Engine(Protocol):
    """What maps and reduces."""

    def map(self, files: Mapping[int, Path], outputs: Mapping[int, Path]) -> dict[int, Mapped]:
        """Map files by number into folders."""

    def reduce(self, number: int, outputs: Sequence[Path]) -> Reduced:
        """Reduce the outputs of a window."""


@dataclass(frozen=True, slots=True)
class ReduceInfo:
    """A reduce that is done."""

    reduce: int
    at: int
    """Microseconds since 1970."""
    files: tuple[str, ...]
    results: int
    letters: int


class Worker:
    """Does the steps of one map-reduce."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        engine: Engine,
        outcomes: Outcomes,
        on_reduce: Callable[[ReduceInfo], None] | None = None,
        together: int = TOGETHER,
    ) -> None:
        self._settings, self._journal, self._together = settings, journal, together
        self._engine, self._outcomes, self._on_reduce = engine, outcomes, on_reduce
        self._scanner = Scanner(settings.input, settings.pattern, settings.settle)
        self._maps = settings.state / "maps"
        self._letters = settings.state / "dead-letters"
        self.growing = 0
        """Files that were not whole at the last look."""
        for folder in (self._maps, self._letters):
            folder.mkdir(parents=True, exist_ok=True)
        self._collect()

    def step(self, now: int, *, expires: bool = True) -> bool:
        """Look, and do what there is to do, at a time in nanoseconds; whether anything was.

        With `expires`, files also leave a time window because time has passed.
        """
        state = self._journal.state
        before = (len(state.inputs), state.done)
        found = self._scanner.look(state.names, now)
        self.growing = len(found.growing)
        clock = state.latest
        for seen in found.taken:
            clock = arrival(seen.modified // 1000, clock, now // 1000)
            self._journal.take(seen, clock)
        if not found.taken:
            self._journal.ended(found.ends)
        self._map(state.to_map()[: self._together])
        self._decide(None)
        # What is still to be mapped comes before the present.
        if expires and not state.to_map():
            self._decide(now // 1000)
        for reduce in sorted(state.waiting.values(), key=lambda each: each.number):
            self._do(reduce)
        return before != (len(state.inputs), state.done) or bool(state.to_map())

    @property
    def ended(self) -> bool:
        """Whether the end was asked for, and all before it is done."""
        state = self._journal.state
        return state.ended and not state.to_map() and not state.waiting

    def next_expiry(self) -> int | None:
        """When the window changes by itself, in microseconds."""
        return next_expiry(self._settings.window, self._journal.state.members)

    # --- map

    def _map(self, files: Sequence[Input]) -> None:
        if not files:
            return
        paths = {each.number: self._settings.input / each.name for each in files}
        outputs = {number: self.output(number) for number in paths}
        for number, mapped in sorted(self._engine.map(paths, outputs).items()):
            given = self._journal.state.inputs[number]
            there = seen_at(paths[number])
            if there is not None and (there.size, there.modified) != (given.size, given.modified):
                self._journal.changed(number, there)
                continue
            self._settle(given, mapped)

    def _settle(self, given: Input, mapped: Mapped) -> None:
        path = self._settings.input / given.name
        name = f"file-{given.number:08d}"
        if mapped.reason:
            reason = f"{path} can't be mapped: {mapped.reason}"
            self._write_letters(name, [{"reason": reason, "where": str(path), "event": ""}])
            log.warning("%s; it is passed over", reason)
            self._journal.failed(given.number, mapped.reason)
            return
        letters = [
            {
                "reason": letter["reason"],
                "where": f"{path}, record {letter['row']}",
                "event": letter["event"],
            }
            for letter in mapped.letters
        ]
        self._write_letters(name, letters)
        self._journal.mapped(given.number, mapped.records, mapped.rejected)

    # --- reduce

    def _decide(self, now: int | None) -> None:
        """Decide the reduces that files, or with `now` time, bring about."""
        state = self._journal.state
        arrivals = state.to_place()
        for change in list(changes(self._settings.window, state.members, arrivals, now)):
            self._journal.decide(change)

    def _do(self, reduce: Reduce) -> None:
        inputs = self._journal.state.inputs
        name = f"reduce-{reduce.number:08d}"
        failed = self._letters / f"{name}.jsonl"
        if not self._outcomes.holds(reduce):
            reduced = self._engine.reduce(reduce.number, [self.output(n) for n in reduce.files])
            letters = [
                {
                    "reason": letter["reason"],
                    "where": f"reduce {reduce.number}",
                    "event": json.dumps(letter["key"], ensure_ascii=False, default=str),
                }
                for letter in reduced.letters
            ]
            failed.unlink(missing_ok=True)
            self._write_letters(name, letters)
            self._outcomes.commit(reduce, reduced, inputs)
        results = self._outcomes.publish(reduce)
        count = len(failed.read_text("utf-8").splitlines()) if failed.exists() else 0
        self._journal.done(reduce.number, results, count)
        self._collect()
        if self._on_reduce is not None:
            names = tuple(inputs[n].name for n in reduce.files)
            self._on_reduce(ReduceInfo(reduce.number, reduce.at, names, results, count))

    def output(self, number: int) -> Path:
        """The folder of a file's map output."""
        return self._maps / f"{number:08d}"

    def _collect(self) -> None:
        """Delete the map outputs that no reduce needs any more, and what killed jobs left."""
        used = {self.output(number) for number in self._journal.state.in_use()}
        for path in self._maps.iterdir():
            if path not in used:
                shutil.rmtree(path, ignore_errors=True)

    def _write_letters(self, name: str, letters: Sequence[Mapping[str, Any]]) -> None:
        if letters:
            lines = [json.dumps(letter, ensure_ascii=False) for letter in letters]
            data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
            write_whole(self._letters / f"{name}.jsonl", data)
