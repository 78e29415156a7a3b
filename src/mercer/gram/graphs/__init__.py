"""Neighbourhood graphs, their components, nearest neighbours in feature space."""
