"""What bytes mean: one folder a format, each with a reader and a writer, none with any idea of models."""
