"""Competitions on a live arena: configuration, scheduling, stages, and what instructors do."""
