"""Questions to a store: results, backward, forward, join."""

from headwater.query.contents import entity_name
from headwater.query.spark import to_spark
from headwater.query.store import Store

__all__ = ["Store", "entity_name", "to_spark"]
