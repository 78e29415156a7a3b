"""CUDA texts of the two kernels of a round; NVRTC compiles them when they are first used."""
