"""Subcommands of the stage group: corpus."""
