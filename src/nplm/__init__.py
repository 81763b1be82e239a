"""A Neural Probabilistic Language Model (Bengio, Ducharme, Vincent, Jauvin; JMLR 3, 2003), reproduced."""

__version__ = "0.1.0"
