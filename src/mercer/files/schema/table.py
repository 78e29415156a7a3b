"""The fixed table of everything that a model file may hold."""

from mercer.files.schema import (
    bayes,
    clustering,
    compat,
    density,
    margin,
    online,
    projection,
    regression,
    selection,
    shared,
    tables,
)
from mercer.files.schema.records import ENUMS, FUNCTIONS, RECORDS

# imported for the records they make
_ = (bayes, clustering, compat, density, margin, online, projection, regression, selection)
__ = (shared, tables)

__all__ = ["ENUMS", "FUNCTIONS", "RECORDS"]
