"""Cost against work: flows, stores, cores, workers and a lake as they grow."""
