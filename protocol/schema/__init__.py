"""Generates the schemas in this folder, and the tables and conversations in protocol/*.md.

`python -m protocol.schema` writes them, `--check` lists what is stale. Only that command, `arena
vectors` and tests import the whole package: `arena` and `bots` read and write the wire by the types
themselves.
"""
