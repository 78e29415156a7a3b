"""Box QPs of support vector machines on a GPU."""
