"""Ace-King-Queen: its rules, how its answers are judged, its view."""
