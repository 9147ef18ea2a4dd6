"""Lowerings: from the nodes of a flow to Spark plans, each with its own rule for provenance."""
