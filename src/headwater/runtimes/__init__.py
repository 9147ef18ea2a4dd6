"""Runtimes: where the sub-flows of a composition run."""
