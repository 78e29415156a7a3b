"""Problems on rows in blocks, of which K = F F' is never held."""

from mercer.problems.blocks.feature_rows import FeatureRows, counted, feature_pieces
from mercer.problems.blocks.questions import BlockDuals, BlockMargin, BlockRidge, BlockRisk

__all__ = [
    "BlockDuals",
    "BlockMargin",
    "BlockRidge",
    "BlockRisk",
    "FeatureRows",
    "counted",
    "feature_pieces",
]
