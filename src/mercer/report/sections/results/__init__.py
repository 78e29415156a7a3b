"""What came out: figures of classifiers and regressions, groups, projections, topics."""
