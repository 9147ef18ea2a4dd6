"""Data binding and type validation: schemas, properties bound by path, and what is valid where."""
