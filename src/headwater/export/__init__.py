"""Export: a query's answer, or a span of results, in formats that others read."""

from __future__ import annotations

from headwater.export.choosing import Asked
from headwater.export.exporting import FORMATS, Exported, export

__all__ = ["FORMATS", "Asked", "Exported", "export"]
