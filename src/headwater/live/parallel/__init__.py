"""The live graph of a flow on a lake: kept by Spark's tasks, each with a part of the records.

As Ananke's algorithm for many operators does. A record belongs to one *shard*, by its id; what is
known of it (its time, whether it is a vertex, how far it reaches) is in that shard's state alone.
After the tasks of a batch have written its edges, those that they reach and the times that came go
to their shards, which write the batch's vertices and labels. Which records a session holds depends
on its key, so sessions have shards of their own, whose answer goes to the records'.

| module | runs in | |
|---|---|---|
| `came` | tasks | what a batch brings: the times of records and the rows that enter sessions |
| `sessions` | tasks | a shard of session keys: which records its sessions hold, and until when |
| `records` | tasks | a shard of records: new vertices, labels, and what is kept of the others |
| `state` | driver | the names of the files that the shards' state is in |
| `graph` | driver | one batch after another |
"""
