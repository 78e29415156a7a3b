"""Box programmes of support vector machines on a card."""
