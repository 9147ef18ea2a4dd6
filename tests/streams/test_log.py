"""The log against a model: a list of events, and a set of keys; with what crashes leave behind."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater import streams
from headwater.streams import Position, StreamError, Streams, index, parquet
from headwater.streams.parquet import ParquetLog
from headwater.streams.registry import default_log


class LogMachine(RuleBasedStateMachine):
    """Publishes, forgets, damages the index, expires; reads the same as a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.opened = streams.open(self.home.name)
        self.opened.create("s", "n bigint", options={"sync": "false"})
        self.events: list[int] = []
        self.start = 0
        self.keys: set[str] = set()
        self.last: dict[str, int] = {}
        self.edges = [0]

    @property
    def index(self) -> Path:
        return self.opened.path("s") / "_index"

    @rule(
        count=st.integers(0, 4),
        key=st.none()
        | st.sampled_from("abc")
        | st.tuples(st.sampled_from("xy"), st.integers(0, 5)),
    )
    def publish(self, count: int, key: str | tuple[str, int] | None) -> None:
        new = list(range(len(self.events), len(self.events) + count))
        receipt = self.opened.publish("s", [{"n": n} for n in new], key=key)
        known = key in self.keys if isinstance(key, str) else False
        if isinstance(key, tuple):
            known = self.last.get(key[0], -1) >= key[1]
        if known or not count:
            assert receipt.events == 0
            return
        assert (receipt.start, receipt.events) == (Position.of(len(self.events)), count)
        self.events += new
        self.edges.append(len(self.events))
        if isinstance(key, str):
            self.keys.add(key)
        elif key is not None:
            self.last[key[0]] = key[1]

    @rule()
    def open_anew(self) -> None:
        """As another process would: nothing is remembered."""
        streams.grouping._groups.clear()

    @precondition(lambda self: self.index.exists() and self.start == 0)
    @rule(cut=st.integers(1, 60))
    def damage_the_index(self, cut: int) -> None:
        """A process was killed before or while it wrote to the index."""
        data = self.index.read_bytes()
        self.index.write_bytes(data[: max(0, len(data) - cut)])
        self.open_anew()

    @rule(place=st.integers(0, 100))
    def expire(self, place: int) -> None:
        before = self.start + (len(self.events) - self.start) * place // 100
        until = max(edge for edge in self.edges if edge <= before)
        gone = self.opened.expire("s", before)
        assert gone == max(0, until - self.start)
        self.start = max(self.start, until)

    @rule(a=st.integers(0, 100), b=st.integers(0, 100))
    def read(self, a: int, b: int) -> None:
        low, high = sorted(self.start + (len(self.events) - self.start) * n // 100 for n in (a, b))
        assert self.opened.table("s", low, high)["n"].to_pylist() == self.events[low:high]

    @invariant()
    def all_is_there_once(self) -> None:
        assert self.opened.table("s")["n"].to_pylist() == self.events[self.start :]
        told = self.opened.describe("s")
        assert (told.start, told.end) == (str(self.start), str(len(self.events)))
        names = sorted(file.name for file in self.opened.path("s").glob("*.parquet"))
        kept = [edge for edge in self.edges[:-1] if edge >= self.start]
        assert names == [f"{edge:020d}.parquet" for edge in kept]

    def teardown(self) -> None:
        self.home.cleanup()


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture
def opened(opened: Streams) -> Streams:
    opened.create("s", "n bigint")
    return opened


def test_an_index_that_is_lost_after_expiry_is_made_anew(opened: Streams) -> None:
    for n in range(5):
        opened.publish("s", {"n": n}, key=f"k{n}")
    opened.expire("s", 3)
    (opened.path("s") / "_index").unlink()
    streams.grouping._groups.clear()
    assert opened.publish("s", {"n": 4}, key="k4").events == 0
    opened.publish("s", {"n": 5})
    assert opened.table("s")["n"].to_pylist() == [3, 4, 5]


def test_an_index_that_is_ahead_of_the_files_is_set_right(opened: Streams) -> None:
    """A power cut may leave the index without the last files."""
    for n in range(3):
        opened.publish("s", {"n": n})
    (opened.path("s") / f"{2:020d}.parquet").unlink()
    streams.grouping._groups.clear()
    opened.publish("s", {"n": 7})
    assert opened.table("s")["n"].to_pylist() == [0, 1, 7]


def test_what_has_expired_is_named_by_where_to_read_from(opened: Streams) -> None:
    for n in range(4):
        opened.publish("s", [{"n": n}] * 10)
    assert opened.expire("s", 25) == 20
    with pytest.raises(StreamError, match="before position 20 have expired; read from 20 on"):
        list(opened.read("s", 5))


def test_the_position_after_files_that_spark_has_read(opened: Streams) -> None:
    for n in range(3):
        opened.publish("s", [{"n": n}] * 10)
    log = opened.log("s")
    assert isinstance(log, ParquetLog)
    names = sorted(str(path) for path in opened.path("s").glob("*.parquet"))
    assert log.after([f"file://{name}" for name in names[:2]]) == Position.of(20)
    assert [path.name for path in log.files(Position.of(10), Position.of(25))] == [
        Path(name).name for name in names[1:]
    ]


def test_a_full_disk_is_told_in_a_line_and_heals(
    opened: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it is full just when a commit is to be written into the index."""
    opened.publish("s", {"n": 0})

    def full(self: index.Index) -> None:
        if not self._unwritten:
            return
        with self._path.open("ab") as file:
            file.write(b"[1,1,17")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(index.Index, "_write", full)
        with pytest.raises(StreamError, match="'s' can't be written to .*: No space left"):
            opened.publish("s", {"n": 1}, key="k")
    assert opened.publish("s", {"n": 1}, key="k").events == 0
    opened.publish("s", {"n": 2})
    streams.grouping._groups.clear()
    assert opened.table("s")["n"].to_pylist() == [0, 1, 2]


def test_a_damaged_line_of_the_index_hides_nothing(opened: Streams) -> None:
    for n in range(6):
        opened.publish("s", {"n": n}, key=f"k{n}")
    path = opened.path("s") / "_index"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * (len(lines[2]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    streams.grouping._groups.clear()
    assert opened.table("s")["n"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert [opened.publish("s", {"n": n}, key=f"k{n}").events for n in range(7)] == [0] * 6 + [1]
    assert opened.table("s")["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_file_found_before_its_line_counts_once(opened: Streams) -> None:
    """A reader may look between the two, and go on with the line that comes then."""
    opened.publish("s", {"n": 0})
    path = opened.path("s") / "_index"
    line = path.read_bytes()
    path.write_bytes(b"")
    log = opened.log("s")
    assert [batch.table["n"].to_pylist() for batch in log.read(Position.of(0))] == [[0]]
    path.write_bytes(line)
    opened.publish("s", {"n": 1})
    assert [batch.table["n"].to_pylist() for batch in log.read(Position.of(0))] == [[0], [1]]
    assert isinstance(log, ParquetLog)
    assert len(log.files(Position.of(0), Position.of(2))) == 2


def test_times_go_up_whatever_the_clock_does(
    opened: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([5_000, 5_000, 5_000, 3_000, 9_000])
    monkeypatch.setattr(parquet, "_now", lambda: next(clock))
    for n in range(5):
        opened.publish("s", {"n": n})
    files = sorted(opened.path("s").glob("*.parquet"))
    times = [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert times == [5_000, 5_001, 5_002, 5_003, 9_000]


def test_where_a_stream_is_that_does_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = streams.open(tmp_path)
    assert opened.create("files", "n bigint").log == "parquet"
    monkeypatch.setenv("HEADWATER_LOG", "elsewhere")
    with pytest.raises(StreamError, match="log='elsewhere' of stream 'other' is neither"):
        opened.create("other", "n bigint")
    monkeypatch.setenv("HEADWATER_LOG", "kafka:mine.")
    assert default_log("radar") == "kafka:mine.radar"
    monkeypatch.delenv("HEADWATER_KAFKA", raising=False)
    with pytest.raises(StreamError, match="needs the option bootstrap"):
        opened.create("radar", "n bigint")
    assert opened.names() == ["files"]
    assert opened.create("said", "n bigint", log="parquet").log == "parquet"
