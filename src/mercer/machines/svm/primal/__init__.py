"""Linear support vector machines, solved in the space of features."""
