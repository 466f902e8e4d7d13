"""The database: its schema, its writer, its readers, and the roster.

The database is reached through SQLAlchemy; there is no other storage interface. Only `schema`,
`lock` and `backup` here, `arena/cli/backup.py` and `arena/web/document_answers.py` depend on its
dialect. Outside this package, `arena/results/audit_database.py` and `arena/cli/replay.py` build
queries of their own.
"""
