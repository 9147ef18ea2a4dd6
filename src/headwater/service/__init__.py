"""Calls of services: one for each event, bounded, timed, tried again, and shared by all sinks."""
