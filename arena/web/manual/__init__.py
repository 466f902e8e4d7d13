"""The manual: finds the documents of the installed version, renders them as HTML, searches them."""
