"""The arena's own page: files, documents and live matches for browsers, on the bots' port (design §9).

`entrance` is where a request comes in; what it may see is decided here and in `arena/records/visibility.py`, never in the page. Nothing in here
is needed to play, and nothing that a browser does may slow a match down.
"""
