"""Models as files that run no code, LIBSVM's files, ONNX."""

from mercer.files.libsvm import (
    LibsvmFormatError,
    LibsvmJudgement,
    LibsvmModel,
    certify_libsvm_model,
    machine_of,
    read_libsvm_model,
    write_libsvm_data,
    write_libsvm_model,
)
from mercer.files.onnx import OnnxExportError, to_onnx

__all__ = [
    "LibsvmFormatError",
    "LibsvmJudgement",
    "LibsvmModel",
    "OnnxExportError",
    "certify_libsvm_model",
    "machine_of",
    "read_libsvm_model",
    "to_onnx",
    "write_libsvm_data",
    "write_libsvm_model",
]
