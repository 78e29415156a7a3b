"""Several tasks that have something in common: by Kronecker structure, or readings one by one."""
