"""What a killed process leaves in a checkpoint, and what of it is in Spark's way."""

from __future__ import annotations

from pathlib import Path

from headwater.capture.checkpoint import Checkpoint


def test_leftovers_of_a_first_batch_are_removed(tmp_path: Path) -> None:
    for name in ("offsets/.0.97a4f4db.tmp", "offsets/..0.97a4f4db.tmp.crc", "state/0/0/1.delta"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("half")
    (tmp_path / "headwater.json").write_text("{}")
    Checkpoint.at(str(tmp_path)).tidy()
    assert [path.name for path in tmp_path.iterdir()] == ["headwater.json"]


def test_a_batch_that_is_planned_keeps_everything(tmp_path: Path) -> None:
    for name in ("offsets/0", "offsets/.1.tmp", "state/0/0/1.delta"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("there")
    before = sorted(tmp_path.rglob("*"))
    Checkpoint.at(str(tmp_path)).tidy()
    assert sorted(tmp_path.rglob("*")) == before
