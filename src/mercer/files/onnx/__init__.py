"""Machines as ONNX graphs in double precision, from plain operators."""

from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.export import to_onnx

__all__ = ["OnnxExportError", "to_onnx"]
