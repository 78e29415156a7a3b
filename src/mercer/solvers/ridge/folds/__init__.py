"""Ridge paths over folds: all penalties of all folds, from work that they share."""
