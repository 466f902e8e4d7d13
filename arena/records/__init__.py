"""What a finished match says, and to whom: its document, its events, its transcripts, and their verification. Pure."""
