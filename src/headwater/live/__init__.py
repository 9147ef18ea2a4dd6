"""The live forward graph: which records reached which results, and which can reach no more."""
