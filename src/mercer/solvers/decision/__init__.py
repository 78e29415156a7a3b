"""Markov decision processes: sweeps over values, or over policies."""
