"""The fixed table of the contents of model files: classes by name, fields with their types."""

from mercer.files.schema import (  # noqa: F401  imported for the records they make
    bayes,
    clustering,
    compat,
    mixtures,
    perceptrons,
    projection,
    regression,
    selection,
    shared,
    support_vector_machines,
    tables,
)
from mercer.files.schema.records import ENUMS, FUNCTIONS, RECORDS

__all__ = ["ENUMS", "FUNCTIONS", "RECORDS"]
