"""Generated kernels run in Triton's interpreter here: no card is needed to test their logic."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported
