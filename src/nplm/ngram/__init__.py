"""Word n-gram models: counts, the deleted-interpolation trigram, modified Kneser-Ney, Katz, ARPA files."""
