"""The high-low bidding game: its rules, how its answers are judged, its view."""
