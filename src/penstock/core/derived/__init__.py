"""Derived streams: conditions and new fields, merged, repartitioned, flattened, each once.

=============  ================================================================
steps          what is done to each record: conditions, fields, lists flattened
selected       a stream with its steps, and the type of what they make
compiled       steps as one function
selecting      the plan and the machine of records that are handled one by one
merging        several streams as one
repartition    the same records under another key
deduplication  each record once within a time, as declared; once is its machine
=============  ================================================================
"""
