"""Generated kernels run in Triton's interpreter here: no card is needed to test their logic."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of torch wait for one another on busy cores
