"""The torch backend: tensors on a GPU, or on the CPU; needs the extra `[torch]`."""
