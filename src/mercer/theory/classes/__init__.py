"""Classes of hypotheses that can be held in the hand: finite ones, conjunctions, an adversary."""
