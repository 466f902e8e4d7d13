"""The database: its schema, its writer, its readers, and the roster.

A storage is a dialect of SQLAlchemy; there is no other interface to implement. What depends on the
dialect is in `schema`, `lock` and `backup` here, in `arena/cli/backup.py` and in
`arena/web/document_answers.py`. Of other packages, `arena/results/audit_database.py` and
`arena/cli/replay.py` build queries of their own.
"""
