"""Schemas as DDL text and as Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.streams import StreamError
from headwater.streams import schema as schemas

SIMPLE = st.sampled_from(
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.bool_(), pa.binary(), pa.date32(), pa.decimal128(12, 3)),
        *(pa.timestamp("us", "UTC"), pa.timestamp("us")),
    ]
)
NAMES = st.sampled_from(["a", "at", "b c", "select", "größe", "x`y", "n.m"])


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f[0])
    return st.one_of(
        inner.map(lambda t: pa.list_(pa.field("element", t))),
        inner.map(lambda t: pa.map_(pa.string(), t)),
        fields.map(lambda given: pa.struct([pa.field(*f) for f in given])),
    )


@given(
    st.lists(
        st.tuples(NAMES, st.recursive(SIMPLE, nested, max_leaves=4), st.booleans()),
        min_size=1,
        unique_by=lambda f: f[0],
    )
)
def test_the_text_of_a_schema_means_it(fields: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(name, kind, nullable=null) for name, kind, null in fields])
    assert schemas.parse(schemas.text(schema)).equals(schema)


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("", "not a schema"),
        ("a", "has no type"),
        ("a bigint,, b int", "not a schema"),
        ("a foo", "column 'a': type foo can't be in a stream"),
        ("a variant", "column 'a': type variant can't be in a stream"),
        ("a int, A string", "column 'a' is twice"),
        ("__hw_x int", "names with __hw_ are Headwater's"),
        ("a array<int", "not a schema, at 'its end'"),
        ("a decimal(x)", "not a schema, at 'x'"),
        ("a int); drop table x --", "not a schema"),
    ],
)
def test_what_is_no_schema_is_refused(ddl: str, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        schemas.parse(ddl)
