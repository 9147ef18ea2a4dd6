"""The diagrams of the docs as SVG, so that a reader's browser has nothing to fetch for them."""

from website.diagrams.drawing import svg
from website.diagrams.parsing import DiagramError, parsed

__all__ = ["DiagramError", "parsed", "svg"]
