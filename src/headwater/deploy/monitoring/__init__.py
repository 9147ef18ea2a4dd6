"""What is counted and judged while a deployment runs, and how others read it."""
