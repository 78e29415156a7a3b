"""The fixed table of what a model file may hold: every class by name, every field with its type."""

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
