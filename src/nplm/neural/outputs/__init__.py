"""Output layers: from the vector Z of a context to ln P of the next word."""
