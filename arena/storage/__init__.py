"""The database: its schema, the one writer, the readers, and the roster."""
