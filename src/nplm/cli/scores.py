"""Subcommands of the stage group: scores."""
