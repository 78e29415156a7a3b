"""Reports: one self-contained HTML page about a fit."""
