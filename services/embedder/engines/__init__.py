"""The engines that run models: ONNX Runtime and sentence-transformers."""
