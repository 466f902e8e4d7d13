"""Audits and exports a database without a running arena; nothing in the database changes."""
