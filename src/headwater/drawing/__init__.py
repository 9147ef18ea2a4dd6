"""Answers as pictures, for notebooks: SVG and HTML as text, without scripts."""

from headwater.drawing.shown import Item, Shown

__all__ = ["Item", "Shown"]
