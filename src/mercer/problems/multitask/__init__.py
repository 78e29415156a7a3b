"""Several tasks that have something in common: what is asked of them."""
