"""Audits a database and exports it. It needs no live arena, and changes nothing."""
