"""Three card poker: its rules, how its answers are judged, its view."""
