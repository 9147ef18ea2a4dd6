"""A flow beside its assertions table: where provenance is asked for, and replayed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import FlowError
from headwater.saf.ancestors import ancestors_sql
from headwater.saf.assertions import Assertions
from headwater.saf.keys import COLUMNS, SCHEMA, Key, Keys, key_list, key_table
from headwater.saf.replaying import Replay, Replayer, given_events
from headwater.saf.tracing import Ancestors, by_operation, retrieve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.saf.flow import Flow

_NEWEST_FIRST = [
    ("child", "ascending"),
    ("side", "ascending"),
    ("timestamp", "descending"),
    ("seqno", "descending"),
]
_NO_ANCESTORS = pa.schema([("of", pa.int64()), ("assertion_id", pa.int64()), *SCHEMA]).empty_table()


class Provenance:
    """Questions about the events of a flow, answered from its assertions table.

    The table may be Arrow, pandas, a Spark DataFrame or a DuckDB relation, and is read once. It has
    the columns `timestamp`, `seqno`, `stream_id` and `delay`, and where wanted `assertion_id`
    and `event_content`.
    """

    def __init__(self, flow: Flow, assertions: Any) -> None:
        self.flow = flow
        self._assertions = Assertions(assertions)

    def ancestors(self, keys: Keys) -> pa.Table:
        """The direct inputs of each key: `of` (its place among `keys`, from 1), then a key.

        Each operation's ancestor function runs once, whatever the number of keys.
        """
        asked = key_table(keys, "keys").select(COLUMNS)
        streams = self.flow.known(asked["stream_id"].unique().to_pylist(), "keys")
        if sources := sorted(streams & self.flow.sources):
            raise FlowError(f"no operation makes stream {sources[0]}: its events have no ancestors")
        numbered = asked.append_column("child", pa.array(range(1, asked.num_rows + 1), pa.int64()))
        found = [
            self._assertions.query(ancestors_sql(operation), keys=own)
            for operation, own in by_operation(self.flow, numbered)
        ]
        if not found:
            return _NO_ANCESTORS
        table = pa.concat_tables(found).sort_by(_NEWEST_FIRST)
        return pa.table(
            {
                "of": table["child"],
                "assertion_id": self._assertions.ids(table["line"]),
                **{name: table[name] for name in COLUMNS},
            }
        )

    def retrieve_ancestors(self, keys: Keys, until: Iterable[int] | None = None) -> Ancestors:
        """The events behind the keys, back to the streams `until`: by default the flow's sources.

        A key need not be in the assertions table: results often are not.
        """
        asked = self._assertions.distinct(key_table(keys, "keys"))
        streams = self.flow.known(asked["stream_id"].unique().to_pylist(), "keys")
        stops = self.flow.known(self.flow.sources if until is None else until, "until")
        self.flow.between(stops, streams, "until")
        return retrieve(self.flow, self._assertions, asked, stops)

    def replay(
        self,
        inputs: Keys,
        until: Iterable[int] | None = None,
        *,
        history: Keys = (),
        keys: Keys = (),
    ) -> Replay:
        """Carry the operations out again, from events with contents up to the streams `until`.

        `until` is by default every result of the flow. `history` are events that fill the windows,
        but whose own outputs are not shown. `keys` are keys of results that the assertions table
        lacks. Contents are taken from a column `event_content`, or else from the assertions table.
        """
        start = key_table(inputs, "inputs")
        before = key_table(history, "history")
        for table, what in ((start, "inputs"), (before, "history")):
            self.flow.known(table["stream_id"].unique().to_pylist(), what)
        stops = self.flow.known(self.flow.results if until is None else until, "until")
        known = defaultdict[int, list[Key]](list)
        for key in key_list(key_table(keys, "keys")):
            known[key.stream_id].append(key)
        given = given_events(self._assertions, start, before)
        return Replayer(self.flow, self._assertions, stops, dict(known)).run(given)
