"""From a composition to units that can be started: pieces, streams between them, frames."""
