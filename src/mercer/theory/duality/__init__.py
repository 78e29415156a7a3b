"""Duality of convex programs: Lagrangians, dual functions, optimality conditions, duality gaps."""
