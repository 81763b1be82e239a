"""Word n-gram models: counts, the deleted-interpolation trigram, modified Kneser-Ney, ARPA files."""
