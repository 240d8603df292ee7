"""Takes HTTP requests; gives the answers of the commands as JSON, bodies and words alike. Read `app.py` first.

The verbs are those of `interfaces/verbs.py`; here are only their addresses, their limits and their errors.
"""
