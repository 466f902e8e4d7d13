"""Finished matches: their documents, their events for spectators, their transcripts, their checks.

Pure: everything is computed from the record of a match, by replaying it with the rules.
"""
