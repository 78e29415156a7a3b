"""What cannot become an ONNX graph, and why."""


class OnnxExportError(ValueError):
    """A machine, a kernel or a step that has no form in ONNX, or whose graph says something else.

    Examples
    --------
    >>> raise OnnxExportError("NearestNeighbors is not exported")
    Traceback (most recent call last):
    mercer.files.onnx.errors.OnnxExportError: NearestNeighbors is not exported
    """
