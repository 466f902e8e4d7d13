"""The `arena` command."""
