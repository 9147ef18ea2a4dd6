"""A soak: everything at once for half an hour, faults among it, and a checker at the end.

`make soak` runs it; `docs/soak.md` has its report.
"""
