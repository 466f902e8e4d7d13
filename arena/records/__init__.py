"""What a finished match says, and to whom: its document, its events for those who look on, its transcripts, and whether it is true.

Pure: everything follows from the record of a match, played again by the rules.
"""
