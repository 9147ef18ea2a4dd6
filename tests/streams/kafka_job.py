"""The publisher that tests kill in a transaction: `python -m tests.streams.kafka_job`, as `job`.

POINT says where in a batch it kills itself: `begun` with the transaction noted and nothing sent,
`sent` with all events there and not committed, `committed` before the transaction is noted as over,
`over` before it is acknowledged.
"""

from __future__ import annotations

import sys

from headwater.streams.kafka_reading import Partition
from headwater.streams.kafka_writing import Writer
from tests.streams import job

if __name__ == "__main__":
    job.POINTS = {
        "begun": (Writer, "_send"),
        "sent": (Writer, "_commit"),
        "committed": (Writer, "_closed"),
        "over": (Partition, "wait_for"),
    }
    job.main(*sys.argv[1:])
