"""How a search runs: tasks, scheduling, journals, progress."""
