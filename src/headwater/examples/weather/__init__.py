"""Weather: radar scans of 121 stations, storms over Indiana, alerts, and a long forecast.

The weather case of Streamflow. `generate` makes the scans of a sky whose storms are known, `storms`
has the functions of the flow, `forecast` is its long job, `map` draws what was found. The flow
itself is a file, which `flow_file` finds:

>>> from headwater.compose import Composition
>>> Composition.read(flow_file("weather")).check()
()
"""

from __future__ import annotations

from pathlib import Path

from headwater.errors import HeadwaterError

FLOWS = {
    "weather": "the whole: stations, detection at two intensities, alerts, forecast",
    "storms": "its first two phases, which publish the stream IndianaStorm35dB",
    "forecasts": "its third phase, which reads that stream",
    "cascade": "six workflows in two rows, joined: how queues follow each other",
}
"""The flow files of this package."""


def flow_file(name: str) -> Path:
    """The path of a flow file."""
    if name not in FLOWS:
        raise HeadwaterError(f"no flow of this example is called {name!r}: {', '.join(FLOWS)}")
    return Path(__file__).with_name(f"{name}.yaml")
