"""Audits a database and exports it, without a running arena and without a change to it."""
