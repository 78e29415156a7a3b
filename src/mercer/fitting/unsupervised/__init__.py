"""Models without a target: clusters, projections, topics."""
