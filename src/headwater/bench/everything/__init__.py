"""Every benchmark, one after the other, into one page: `headwater bench all`."""
