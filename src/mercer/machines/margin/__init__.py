"""Support vector machines: classification, regression, novelty."""
