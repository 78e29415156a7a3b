"""Models as files that run no code, and the files of others."""

from mercer.files.errors import ModelFormatError
from mercer.files.load import load
from mercer.files.save import save
from mercer.files.verifying.verify import Verification, verify

__all__ = ["ModelFormatError", "Verification", "load", "save", "verify"]
