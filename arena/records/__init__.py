"""Finished matches: their documents, their events for spectators, their transcripts, their checks.

Pure: everything follows from the record of a match, played again by the rules.
"""
