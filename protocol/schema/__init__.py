"""What is generated from the types: the schemas in this folder, and the tables and conversations in the pages protocol/*.md.

`python -m protocol.schema` writes them, `--check` says what is stale. Nothing but that command and the tests imports this package:
`arena` and `bots` read and write the wire by the types themselves.
"""
