"""Files of models: Mercer's own format, which runs no code, LIBSVM's formats, and ONNX."""

from mercer.files.container import ModelFormatError
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
from mercer.files.model import load, save
from mercer.files.onnx import OnnxExportError, to_onnx
from mercer.files.verification import Verification, verify

__all__ = [
    "LibsvmFormatError",
    "LibsvmJudgement",
    "LibsvmModel",
    "ModelFormatError",
    "OnnxExportError",
    "Verification",
    "certify_libsvm_model",
    "load",
    "machine_of",
    "read_libsvm_model",
    "save",
    "to_onnx",
    "verify",
    "write_libsvm_data",
    "write_libsvm_model",
]
