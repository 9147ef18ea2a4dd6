"""The reference interpreter against small tables by hand."""
