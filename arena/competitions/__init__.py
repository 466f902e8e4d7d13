"""Competitions on a live arena: configuration, scheduler, stages and the commands of instructors.

It drives the server and the storage, and knows the page only as a Protocol.
"""
