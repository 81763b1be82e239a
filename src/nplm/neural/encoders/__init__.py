"""Encoders: from the words of a context to the vector Z that an output layer gives the next word's probability from."""
