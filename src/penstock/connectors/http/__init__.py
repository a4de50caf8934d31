"""HTTP: what is fetched again and again becomes records, and records are posted to others.

========  ==========================================================
poll      a source: a document that is fetched when it has changed
webhook   a sink: batches as POST requests, signed, tried again
halves    rows in batches; those that are refused are found by halves
exchange  one request and its answer, bounded, over a kept connection
========  ==========================================================
"""
