"""Answers of services in the form that their schema says, or why they are not."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Row
from pyspark.sql import types as T

from headwater.service.calls import Final

_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}


def conformed(answer: Any, schema: T.StructType, timezone: str) -> dict[str, Any]:
    """An answer's fields, checked against a schema; fields that it does not name are left out.

    >>> schema = T.StructType().add("score", "double").add("at", "date")
    >>> conformed({"score": 1, "at": "2024-05-01", "more": 0}, schema, "UTC")
    {'score': 1.0, 'at': datetime.date(2024, 5, 1)}
    """
    return _Conforming(timezone).struct(_fields(answer, schema), schema, "")


def _fields(answer: Any, schema: T.StructType) -> Mapping[str, Any]:
    """An answer by the names of its fields."""
    names = schema.fieldNames()
    match answer:
        case Row() if hasattr(answer, "__fields__"):
            return answer.asDict()
        case Mapping():
            return answer
        case tuple() | list() if len(answer) == len(names):
            return dict(zip(names, answer, strict=True))
        case tuple() | list():
            raise Final(f"the answer has {len(answer)} values, not {len(names)}")
    raise Final(f"the answer is {_said(answer)}, not an object")


class _Conforming:
    """Values of an answer as Python's own for Spark's types."""

    def __init__(self, timezone: str) -> None:
        self.timezone = timezone

    def struct(self, values: Mapping[str, Any], schema: T.StructType, at: str) -> dict[str, Any]:
        made = {}
        for field in schema.fields:
            path = f"{at}.{field.name}" if at else field.name
            made[field.name] = self.value(values.get(field.name), field.dataType, path)
            if made[field.name] is None and not field.nullable:
                raise Final(f"the answer has no {path!r}")
        return made

    def value(self, value: Any, kind: T.DataType, at: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None:
            return None
        try:
            return self._of(value, kind, at)
        except (ValueError, TypeError, OverflowError, InvalidOperation):
            name = kind.simpleString()
            raise Final(f"the answer's {at!r} is {_said(value)}, not {name}") from None

    def _of(self, value: Any, kind: T.DataType, at: str) -> Any:
        match kind, value:
            case T.StructType(), _:
                return self.struct(_fields(value, kind), kind, at)
            case T.ArrayType(), list() | tuple() | np.ndarray():
                return [self._element(v, kind, f"{at}[{i}]") for i, v in enumerate(value)]
            case T.MapType(), Mapping():
                return [(k, self.value(v, kind.valueType, f"{at}.{k}")) for k, v in value.items()]
            case T.BooleanType(), bool():
                return value
            case T.IntegralType(), int() if not isinstance(value, bool):
                return _whole(value, kind)
            case ((T.FloatType() | T.DoubleType()), int() | float()) if not isinstance(value, bool):
                return float(value)
            case T.DecimalType(), int() | float() | str() | Decimal():
                return round(Decimal(str(value)), kind.scale)
            case ((T.TimestampType() | T.TimestampNTZType()), datetime() | str()):
                return self._moment(value, kind)
            case T.DateType(), str():
                return date.fromisoformat(value)
            case T.DateType(), date() if not isinstance(value, datetime):
                return value
            case T.BinaryType(), str():
                return base64.b64decode(value, validate=True)
            case T.BinaryType(), bytes() | bytearray():
                return bytes(value)
            case ((T.StringType() | T.VarcharType() | T.CharType()), str()):
                return value
        raise TypeError

    def _element(self, value: Any, kind: T.ArrayType, at: str) -> Any:
        made = self.value(value, kind.elementType, at)
        if made is None and not kind.containsNull:
            raise Final(f"the answer has no {at!r}")
        return made

    def _moment(self, value: datetime | str, kind: T.DataType) -> datetime:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(kind, T.TimestampNTZType):
            return moment.replace(tzinfo=None)
        if moment.tzinfo is not None:
            return moment
        return pd.Timestamp(moment).tz_localize(self.timezone)


def _whole(value: int, kind: T.DataType) -> int:
    limit = 1 << (_BITS[type(kind)] - 1)
    if not -limit <= value < limit:
        raise OverflowError
    return value


def _said(value: Any) -> str:
    """A value in short, for a reason."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
