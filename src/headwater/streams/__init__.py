"""Named streams: durable, replayable logs of events, and the registry of them."""

from headwater.streams.binding import Binding
from headwater.streams.consumers import Consumer
from headwater.streams.declaration import Declaration, Producer
from headwater.streams.describing import Description, Lag
from headwater.streams.errors import LogUnreachable, SchemaClash, StreamError, StreamRemoved
from headwater.streams.log import Batch, Key, Log, Receipt
from headwater.streams.positions import Position
from headwater.streams.publisher import Publisher
from headwater.streams.registry import Streams, open  # noqa: A004 - streams.open
from headwater.streams.subscription import Subscription

__all__ = [
    "Batch",
    "Binding",
    "Consumer",
    "Declaration",
    "Description",
    "Key",
    "Lag",
    "Log",
    "LogUnreachable",
    "Position",
    "Producer",
    "Publisher",
    "Receipt",
    "SchemaClash",
    "StreamError",
    "StreamRemoved",
    "Streams",
    "Subscription",
    "open",
]
