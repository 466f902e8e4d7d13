"""Tests of the page: a package, so that what they share ends with the last of them."""
