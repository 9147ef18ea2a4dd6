"""What provenance costs in storage: the formulas of the paper's section V, in bytes.

A linear flow of `components` operations takes `messages` events; each key has `key` bytes and
each content `content` bytes.
"""

from __future__ import annotations


def unoptimized_cost(*, key: int, content: int, messages: int, components: int) -> int:
    """Every event of every stream with its content.

    >>> unoptimized_cost(key=50, content=100, messages=1_000, components=4)
    600000
    """
    return (key + content) * messages * components


def optimized_cost(*, key: int, content: int, messages: int, components: int) -> int:
    """Contents of the first inputs only, and the keys of everything else.

    >>> optimized_cost(key=50, content=100, messages=1_000, components=4)
    300000
    """
    return (key + content) * messages + key * messages * (components - 1)


def saved_percent(*, key: int, content: int, messages: int, components: int) -> float:
    """How much less the optimized way stores, in percent of the unoptimized one.

    >>> saved_percent(key=50, content=100, messages=1_000, components=4)
    50.0
    """
    whole = unoptimized_cost(key=key, content=content, messages=messages, components=components)
    less = optimized_cost(key=key, content=content, messages=messages, components=components)
    return (whole - less) / whole * 100


def unoptimized_marginal_cost(*, key: int, content: int, messages: int) -> int:
    """What one more operation adds if contents are stored.

    >>> unoptimized_marginal_cost(key=50, content=100, messages=1_000)
    150000
    """
    return (key + content) * messages


def optimized_marginal_cost(*, key: int, messages: int) -> int:
    """What one more operation adds if only keys are stored.

    >>> optimized_marginal_cost(key=50, messages=1_000)
    50000
    """
    return key * messages
