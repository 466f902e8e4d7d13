"""Audits a database and exports it. Needs no live arena."""
