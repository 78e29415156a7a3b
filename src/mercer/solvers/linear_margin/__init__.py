"""Support vector machines on features: interior point, coordinate descent."""
