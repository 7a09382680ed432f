"""Where bytes are: memory, local files, file objects; and how they are written, whole or not at all."""
