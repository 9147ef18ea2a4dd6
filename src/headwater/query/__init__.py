"""Questions to a store: results, backward, forward, join."""

from headwater.query.spark import to_spark
from headwater.query.store import Store, entity_name

__all__ = ["Store", "entity_name", "to_spark"]
