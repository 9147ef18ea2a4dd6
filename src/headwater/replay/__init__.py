"""Replay: provenance found by running a flow again over a slice of its sources."""
