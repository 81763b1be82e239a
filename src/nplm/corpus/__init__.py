"""From a published corpus, or plain text, to encoded splits: retrieve, tokenize, build the vocabulary, encode."""
