"""One module per table: `rules()` gives its Great Expectations expectations beyond those derived from `tables.py`."""
