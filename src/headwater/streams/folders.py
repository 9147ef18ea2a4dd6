"""The folder of a stream: it appears whole, and goes at once."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

from headwater.streams.consumers import Consumers
from headwater.streams.declaration import exists, load
from headwater.streams.errors import StreamError
from headwater.streams.files import locked, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.streams.declaration import Declaration


def create(registry: Path, made: Declaration) -> None:
    """Make the folder of a stream; of several who do so at once, one does."""
    hidden = registry / f".new-{uuid.uuid4().hex}"
    try:
        hidden.mkdir(parents=True)
        (hidden / "_writing").mkdir()
        (hidden / "_consumers").mkdir()
        made.save(hidden)
        hidden.rename(registry / made.name)  # fails if there is one: names are unique
    except OSError as error:
        require_new(registry, made.name)
        raise StreamError(
            f"stream {made.name!r} can't be made in {registry}: {error.strerror}"
        ) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    sync_folder(registry)


def require_new(registry: Path, name: str) -> None:
    """Refuse a name that is taken, and say by whom."""
    folder = registry / name
    if not folder.exists():
        return
    if not exists(folder):
        raise StreamError(f"{folder} is there and is not a stream; choose another name")
    raise StreamError(
        f"stream {name!r} is there already in {registry}, of {load(folder).producer}; choose "
        "another name, or publish into it"
    )


def remove(folder: Path, *, force: bool) -> None:
    """Delete the folder of a stream; refused while it has consumers, unless forced."""
    with locked(folder / "_lock"):
        consumers = Consumers(folder)
        named = [consumer.name for consumer in consumers.all()]
        if not force and (named or consumers.reading()):
            readers = ", ".join(named) or "a subscription"
            raise StreamError(
                f"stream {folder.name!r} is read by {readers}; forget its consumers and end its "
                "subscriptions first, or force it"
            )
        gone = folder.with_name(f".removed-{uuid.uuid4().hex}")
        folder.rename(gone)  # at once for everybody: the files go afterwards
    shutil.rmtree(gone, ignore_errors=True)
