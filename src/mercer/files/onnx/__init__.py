"""Machines as ONNX graphs in double precision, from plain operators."""
