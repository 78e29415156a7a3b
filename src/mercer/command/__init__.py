"""The command `mercer`: from a table to a model, its report and its predictions."""
