"""LIBSVM's files: read and write models, write data, and certify a model against its data."""

from mercer.files.libsvm.certificate import LibsvmJudgement, certify_libsvm_model
from mercer.files.libsvm.machines import machine_of, write_libsvm_data, write_libsvm_model
from mercer.files.libsvm.model import LibsvmFormatError, LibsvmModel, read_libsvm_model

__all__ = [
    "LibsvmFormatError",
    "LibsvmJudgement",
    "LibsvmModel",
    "certify_libsvm_model",
    "machine_of",
    "read_libsvm_model",
    "write_libsvm_data",
    "write_libsvm_model",
]
