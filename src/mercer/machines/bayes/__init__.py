"""Tables and probabilities: naive Bayes, Gaussian classes, decisions, words."""
