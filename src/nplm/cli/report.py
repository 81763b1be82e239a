"""Subcommands of the stage group: report."""
