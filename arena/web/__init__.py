"""The arena's own page: files, documents and live matches for browsers, on the bots' port.

`arena/server/entrance.py` accepts the requests. What a viewer may see is decided here and in
`arena/records/visibility.py`, never in the browser. Matches do not depend on this package, and
nothing that a browser does may slow a match down.
"""
