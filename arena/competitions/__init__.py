"""Competitions on a live arena: configuration, the scheduler, the stages that open matches, and what instructors do.

It drives the server and the storage, and knows the page by a Protocol alone.
"""
