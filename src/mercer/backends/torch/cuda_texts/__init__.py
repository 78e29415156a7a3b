"""CUDA C++ that is compiled on the user's machine, by the compiler that torch brings."""
