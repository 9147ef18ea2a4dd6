"""Flows: sources, frames of rows, sinks, and the nodes that describe them."""
