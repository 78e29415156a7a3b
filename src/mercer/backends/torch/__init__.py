"""The torch backend: tensors on a graphics card, or on the CPU; needs the extra `[torch]`."""
