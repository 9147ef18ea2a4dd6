"""Capture: the run of a flow, one store transaction for each micro-batch."""
