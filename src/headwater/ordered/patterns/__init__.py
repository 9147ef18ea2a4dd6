"""Patterns over arrival order: a subset of SQL's MATCH_RECOGNIZE, without Spark."""

from headwater.ordered.patterns.matching import Patterns
from headwater.ordered.patterns.pattern import Pattern

__all__ = ["Pattern", "Patterns"]
