"""The manual: the documents of the installed version, found, turned into HTML, and searched.

It knows no HTTP, no game and no clock, and imports from `protocol` alone.
"""
