"""Export of estimators as ONNX graphs in double precision, from plain operators."""

from mercer.files.onnx.export import to_onnx
from mercer.files.onnx.graph import OnnxExportError

__all__ = ["OnnxExportError", "to_onnx"]
