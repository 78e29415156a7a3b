"""Models as files that run no code, LIBSVM's files, ONNX."""
