# ruff: noqa: E501
"""Rules of composition: each violation has its node, its port and its rule, all told at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.compose import RULES, Composition, CompositionError, Violation

HEAD = """\
flow: test
nodes:
  s: {source: {stream: s, schema: "a bigint, b string, t timestamp", event_time: t}}
  r: {source: {stream: r, schema: "c bigint, b string, t timestamp"}}
  one: {static: {value: 1}}
  fs: {filter: {from: s, where: a > 0}}
  fr: {filter: {from: r, where: c > 0}}
"""
FUNCTION = 'call: "m:f", schema: "x int"'


def found(*lines: str) -> list[Violation]:
    """What is wrong with some nodes beside two sources, a static node and two filters."""
    text = HEAD + "".join(f"  {line}\n" for line in lines)
    try:
        return list(Composition.parse(text, "test.yaml").check())
    except CompositionError as error:
        return list(error.violations)


CASES = [
    # line, node, port, rule, what the text says
    ("n: {filter: {from: fss, where: x}}", "n", "fss", "unknown-node", "did you mean 'fs'"),
    ("n: {filter: {from: fs.failures, where: a > 1}}", "n", "fs_failures", "unknown-node", "no output 'failures'"),
    ("n: {filter: {from: [fs, fr], where: a > 1}}", "n", "fr", "ports", "reads one node, and this reads 2; merge or join"),
    ("n: {merge: {from: fs}}", "n", None, "ports", "2 nodes or more, and this reads 1"),
    ("n: {join: {from: [fs, fs], policy: latest}}", "n", "fs", "ports", "two ports are called 'fs'"),
    ("n: {filter: {from: n, where: x}}", "n", "n", "cycle", "n → n is a cycle"),
    ("n: {sink: {from: s, stream: out}}", "n", "s", "source-to-sink", "straight into a sink"),
    ("n: {source: {stream: x}}", "n", None, "unread-source", "nothing reads this source"),
    ("n: {filter: {from: one, where: x}}", "n", "one", "needs-stream", "a filter needs a stream"),
    ("n: {aggregate: {from: one, window: {count: 2}, columns: {k: count(*)}}}", "n", "one", "needs-stream", "an aggregate needs"),
    ("n: {sink: {from: one, stream: out}}", "n", "one", "needs-stream", "a sink needs a stream"),
    ("n: {merge: {from: [fs, one]}}", "n", "one", "static-input", "a merge takes streams only"),
    ("n: {join: {from: [one, fs], on: a}}", "n", "one", "static-input", "the stream comes first"),
    ("n: {join: {from: [fs, fr], on: b}}", "n", None, "policy", "latest, last, window or value"),
    ("n: {join: {from: [fs, one], policy: latest}}", "n", None, "policy", "is for two streams"),
    (f"n: {{function: {{from: fs, {FUNCTION}, runtime: static}}}}", "n", "fs", "static-reads-stream", "declared static"),
    ('n: {static: {from: fs, call: "m:f", runtime: static}}', "n", "fs", "static-reads-stream", "declared static"),
    ("n: {filter: {from: fs, where: a > 1, runtime: jobs}}", "n", None, "runtime", "can't run as jobs; it can as operators or functions"),
    ("n: {filter: {from: fs, where: a > 1, cardinality: 2}}", "n", None, "cardinality", "this filter has <1"),
    ("n: {aggregate: {from: fs, window: {count: 4}, columns: {k: count(*)}, cardinality: 1}}", "n", None, "cardinality", "has 1/4"),
    ("n: {sink: {from: fs, stream: r}}", "n", None, "stream-name", "would come in again"),
    ("n: {sql: {from: fs, query: select * from sf}}", "n", None, "tables", "reads 'sf', which is no port; there are fs"),
    ("n: {sql: {from: [fs, fr], query: select * from fs}}", "n", "fr", "tables", "does not read this port"),
    (f"n: {{function: {{from: [fs, fr], {FUNCTION}}}}}", "n", "fr", "join-required", "whose rates differ"),
    ("n: {merge: {from: [fs, fr]}}", "n", "fr", "columns", "differ in a, c"),
    ("n: {filter: {from: fs, where: bb = 'x'}}", "n", "fs", "columns", "'fs' has no column 'bb'; did you mean 'b'"),
    ("n: {filtr: {from: fs}}", "n", None, "kind", "no kind 'filtr'; did you mean 'filter'"),
    ("n: {filter: {from: fs, where: x}, map: {from: fs}}", "n", None, "kind", "one kind, and this has 2"),
    ("n: {filter: {form: fs, where: x, from: fs}}", "n", None, "key", "no key 'form'; did you mean 'from'"),
    ("n: {filter: {from: fs}}", "n", None, "key", "filter needs where"),
    ("n: {filter: {from: fs, where: 3}}", "n", None, "value", "where is SQL, not 3"),
    ("n: {job: {from: fs, run: x, slots: 0}}", "n", None, "value", "slots is a whole number, 1 at least, not 0"),
    ('n: {job: {from: fs, run: x, call: "m:f"}}', "n", None, "value", "one of run, call, spark, steps, not run and call"),
    ("n: {job: {from: fs, run: x, steps: {a: {run: x}}}}", "n", None, "value", "not run and steps together"),
    ("n: {job: {from: fs, steps: {a: {run: x}, b: {run: x, after: c}}}}", "n", None, "value", "steps has a step 'b' that comes after 'c', which is no step"),
    ("n: {job: {from: fs, steps: {a: {run: x, after: b}, b: {run: x, after: a}}}}", "n", None, "value", "a step 'a' that waits for itself: a after b after a"),
    ("n: {job: {from: fs, steps: {a: {run: x, after: b}, b: {run: x}}}}", "n", None, "value", "'b', which is written below it; write it below that"),
    ("n: {job: {from: fs, steps: {a: {run: x}, b: {run: x}}}}", "n", None, "value", "a step 'a' that none comes after"),
    ("n: {job: {from: fs, steps: {a: {run: x, spark: 'm:f'}}}}", "n", None, "value", "needs one of run, call, spark, not run and spark together"),
    ("n: {job: {from: fs, steps: {a: {run: x, afer: b}}}}", "n", None, "value", "has no key 'afer'; did you mean 'after'?"),
    ("n: {job: {from: fs, steps: {event: {run: x}}}}", "n", None, "value", "a step 'event'; its name must be"),
    ("n: {job: {from: fs, steps: {a: {run: x}}, static: {a: 1}}}", "n", None, "value", "'a' is in both steps and static; rename one"),
    ("n: {job: {from: fs, run: x, timeout: 3 fortnights}}", "n", None, "value", "a length of time such as"),
    ("n: {join: {from: [fs, fr], policy: last, left: 3}}", "n", None, "value", "policy last needs right"),
    ("n: {join: {from: [fs, fr], policy: latest, clock: x}}", "n", None, "value", "one of the ports fs, fr"),
    ("n: {aggregate: {from: fs, window: {count: 2, slide: 3}, columns: {k: count(*)}}}", "n", None, "value", "slide is greater than the size"),
    ("n: {aggregate: {from: fs, window: {count: 2, time: 3 seconds}, columns: {k: count(*)}}}", "n", None, "value", "needs one of count, time"),
    ("n: {match: {from: fs, pattern: 'A (B', measures: {k: count(*)}}}", "n", None, "value", "pattern"),
    ("n: {service: {from: fs, target: 'https://me:secret@x.org', response: r int}}", "n", None, "value", "password"),
    ("n: {function: {from: fs, call: find_storms, schema: x int}}", "n", None, "value", "a function as 'module:function'"),
    ("n: {function: {from: fs, call: 'm:f', schema: x itn}}", "n", None, "value", "no type 'itn'; did you mean 'int'"),
    ("n: {source: {stream: x, format: csv}}", "n", None, "value", "one of stream, format, not stream and format"),
    ("n: {sink: {from: fs}}", "n", None, "value", "needs stream, alert or both"),
    ("n-: 3", "n-", None, "kind", "a node is {kind: {…}}"),
    ('"n\\n": {filter: {from: fs, where: a > 1}}', "n\n", None, "name", "can't be a node's name"),
    ("n: {aggregate: {from: fs, window: {value: 3 seconds, slide: 1, on: t}, columns: {k: count(*)}}}", "n", None, "value", "slide"),
    ("2n: {filter: {from: fs, where: x}}", "2n", None, "name", "can't be a node's name"),
    ("fs: {filter: {from: s, where: a > 1}}", "fs", None, "name", "'fs' stands here twice"),
    ("n: {filter: {from: fs, where: a > 1, where: a > 2}}", "n", None, "name", "'where' stands here twice"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "node", "port", "rule", "says"), CASES, ids=[c[0] for c in CASES])
def test_each_violation_has_node_port_and_rule(
    line: str, node: str, port: str | None, rule: str, says: str
) -> None:
    (violation,) = found(line)
    assert (violation.node, violation.port, violation.rule) == (node, port, rule)
    assert says in violation.text
    assert (violation.file, violation.line) == ("test.yaml", 8)
    assert "\n" not in str(violation)
    assert rule in RULES


def test_a_sink_that_feeds_something() -> None:
    (violation,) = found(
        "out: {sink: {from: fs, stream: out}}", "n: {filter: {from: out, where: a > 1}}"
    )
    assert (violation.node, violation.port, violation.rule) == ("n", "out", "sink-feeds")
    assert "read fs instead" in violation.text


def test_a_stream_into_a_source() -> None:
    (violation,) = found("n: {source: {stream: x, from: fs}}", "m: {filter: {from: n, where: z}}")
    assert (violation.node, violation.port, violation.rule) == ("n", "fs", "stream-into-source")


def test_two_sinks_of_one_stream() -> None:
    lines = [f"{name}: {{sink: {{from: fs, stream: out}}}}" for name in ("one_sink", "other")]
    (violation,) = found(*lines)
    assert (violation.node, violation.rule) == ("other", "stream-name")


def test_everything_is_told_at_once_and_nothing_twice() -> None:
    told = found(
        "a: {filter: {from: c, where: x}}",
        "b: {filter: {form: a, where: 3}}",
        "c: {map: {from: [a], columns: {x: x}}}",
        "d: {merge: {from: [b]}}",
        "e: {filter: {from: nowhere, where: x}}",
        "f: {aggregate: {from: e, window: {count: 3}, columns: {x: sum(x)}}}",
    )
    assert [(v.line, v.node, v.rule) for v in told] == [
        (8, "a", "cycle"),
        (9, "b", "key"),
        (9, "b", "key"),
        (9, "b", "value"),
        (11, "d", "ports"),
        (12, "e", "unknown-node"),
    ]


def test_every_cycle_is_told_once() -> None:
    told = found(
        "a: {filter: {from: b, where: x}}",
        "b: {filter: {from: a, where: x}}",
        "c: {filter: {from: e, where: x}}",
        "d: {filter: {from: c, where: x}}",
        "e: {filter: {from: d, where: x}}",
        "behind: {filter: {from: e, where: x}}",
    )
    cycles = [v.text.split(" is a cycle")[0].split(" → ") for v in told]
    assert {frozenset(cycle) for cycle in cycles} == {frozenset("ab"), frozenset("cde")}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("flow: x\nnodes: {a: [}", 2, "this is no YAML"),
        ("flow: x\nnodes:\n  a: !!python/object:os.system {}\n", 3, "kind|tag"),
        ("", None, "a flow file has"),
        ("- a\n- b\n", 1, "a flow file has"),
        ("flow: x\n", None, "nodes is"),
        ("flow: [1]\nnodes: {}\n", 1, "flow is the flow's name"),
        ("flow: x\nnodes: {}\nnods: {}\n", 3, "did you mean 'nodes'"),
        ('{"flow": "x",\n "nodes": {"a": {"filtr": {}}}}', 2, "did you mean 'filter'"),
        ("a: &a [1]\n" + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, *{'a' if not i else f'b{i - 1}'}]\n" for i in range(30)), None, "more aliases than"),
        ("[" * 3000, None, "nested too deeply|no YAML"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_flow_file(text: str, line: int | None, says: str) -> None:
    with pytest.raises(CompositionError) as caught:
        Composition.parse(text, "x.yaml")
    first = caught.value.violations[0]
    assert re.search(says, first.text)
    assert line is None or first.line == line


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"flow: \xe9\xff")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    for name, says in (
        ("absent.yaml", "No such file"),
        ("latin.yaml", "no text in UTF-8"),
        ("raises.py", "raises ZeroDivisionError: division by zero"),
        ("none.py", "makes 0 compositions"),
    ):
        with pytest.raises(CompositionError, match=says):
            Composition.read(tmp_path / name)


def test_words_of_yaml_1_1_are_words() -> None:
    flow = Composition.parse(
        "flow: x\nnodes:\n  j: {join: {from: [a, b], policy: latest, on: [yes]}}\n"
    )
    assert flow["j"].on == ("yes",)  # type: ignore[attr-defined]


def test_what_the_grammar_allows() -> None:
    assert (
        found(
            f"once: {{function: {{from: one, {FUNCTION}}}}}",  # a pure workflow
            "begin: {source: {stream: x, from: once}}",  # the transition into a source
            f"each: {{function: {{from: [fs, once, one], {FUNCTION}}}}}",  # repeated for each event
            "table: {join: {from: [begin, one], on: a}}",
            "asked: {service: {from: fs, target: 'm:f', response: r int}}",
            "failed: {filter: {from: asked.failures, where: reason is not null}}",
        )
        == []
    )
