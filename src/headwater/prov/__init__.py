"""For jobs that tell their own provenance: a publisher without Spark or any other package."""

from headwater.prov.emit import Emitter, Execution

__all__ = ["Emitter", "Execution"]
