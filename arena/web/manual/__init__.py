"""The manual: finds the installed version's documents, renders them as HTML, and searches them."""
