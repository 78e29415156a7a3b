"""How support vector machines are solved over blocks."""
