"""Reports: one self-contained HTML page about a fit, or a model card in Markdown."""

from mercer.report.write import model_card, render, write_report

__all__ = ["model_card", "render", "write_report"]
