"""The rows of the table of a card; `benchmarks/device.py` runs them."""
