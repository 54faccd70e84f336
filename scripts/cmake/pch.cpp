// Owns the precompiled header of the libraries and tools; a target needs a source file.
