"""Subcommands of the stage group: neural."""
