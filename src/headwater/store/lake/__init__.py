"""The lake: the relations of a store as Delta tables, written by Spark's executors.

One batch is one logical commit across tables. Tasks write data files; the driver notes them down
as prepared, adds them to each table with the batch's number as Delta's transaction, and last adds
the row of `batches`: what has no row there is not seen by anybody.
"""
