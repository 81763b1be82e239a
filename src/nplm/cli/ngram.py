"""Subcommands of the stage group: ngram."""
