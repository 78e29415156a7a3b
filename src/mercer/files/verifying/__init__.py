"""Whether a stored machine is what its data and its parameters make of it."""
