"""Several tasks that have something in common: whether their posterior is right."""
