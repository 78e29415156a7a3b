"""Fisher, Bayes and perceptrons against their rivals."""
