"""Several tasks that have something in common."""
