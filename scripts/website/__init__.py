"""What the documentation's site has beyond Markdown: its hooks are in `scripts/hooks.py`."""
