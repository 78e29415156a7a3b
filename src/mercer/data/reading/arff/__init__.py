"""ARFF, the format of Weka: declared attributes, then rows, dense or sparse."""

from mercer.data.reading.arff.read import arff_blocks, read_arff

__all__ = ["arff_blocks", "read_arff"]
