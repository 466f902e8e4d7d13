"""The database: its schema, the one writer, the readers, and the roster.

Readers never wait for the writer. What goes in and what comes out are structs; SQL stays in here.
"""
