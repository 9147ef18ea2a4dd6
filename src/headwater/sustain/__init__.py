"""Sustainability: can each node of a flow keep up, before it runs and while it does."""

from headwater.sustain.erlang import Steady
from headwater.sustain.history import Totals
from headwater.sustain.monitor import Matrix, Monitor
from headwater.sustain.network import Forecast, Outcome, Station, forecast
from headwater.sustain.queue import Measured, Queue
from headwater.sustain.verdicts import Verdict

__all__ = [
    "Forecast",
    "Matrix",
    "Measured",
    "Monitor",
    "Outcome",
    "Queue",
    "Station",
    "Steady",
    "Totals",
    "Verdict",
    "forecast",
]
