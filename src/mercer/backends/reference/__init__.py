"""The NumPy backend: short, and the specification of the compiled one."""
