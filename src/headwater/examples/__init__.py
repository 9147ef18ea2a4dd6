"""Streams and flows to try Headwater with."""
