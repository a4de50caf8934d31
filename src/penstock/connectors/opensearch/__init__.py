"""OpenSearch: records as documents of an index, each known by its key or by where it lies.

=========  =================================================================
sink       a sink: its options
writer     batches, and the positions behind them, over HTTP
documents  what is sent for a batch, and what each answer to it means; no I/O
=========  =================================================================
"""
