"""Generates the schemas in this folder, and the tables and conversations in protocol/*.md.

`python -m protocol.schema` writes them; `--check` lists outdated ones. Only that command, `arena
vectors` and tests import the whole package: `arena` and `bots` encode and decode messages by the
types themselves.
"""
