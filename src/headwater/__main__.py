"""`python -m headwater`: the command line without its script."""

from __future__ import annotations

from headwater.cli import main

if __name__ == "__main__":
    main()
