"""Pure rules: no clock, no I/O, no Kafka, no Spark.

===========  =====================================================================================
app          what a user declares with
declare      the methods of the application: data, parts
drawing      the graph as text, Mermaid and SVG
rules        what `penstock check` verifies
wiring       how the parts of a graph hang together: by name, their results, their cycles
graph        the application as a value: data, parts, and how records flow
tables       aggregations of tables, with subtraction
rollup       windowed aggregations as declared, and made ready for every engine
lifecycles   declared state machines for each key, as operators
feeds        live queries as a gateway follows them, and what each client is told
joins        joins of streams and tables, as declared, and their machines
derived      streams of conditions and fields, merged, repartitioned, each record once
patterns     patterns over time: this, then that, within a time
grid         live queries as operators: cells that compare, and results that are kept
operators    what joins, patterns and the like are to every engine
keyed        what operators keep for each key: rows in time, rows of a table, bags
sql          read-only SQL over rows that are at hand
live         live queries: filters, orders, results that keep themselves current
aggregates   counts, sums, quantiles...: all that engines know of each in one module
panes        the pane machine: windows, triggers, watermarks
status       what running parts say about themselves
expression   conditions and values in Spark's dialect
records      record types: schema, codec, key, event time, dead letters
settings     the settings of a deployment
matching     patterns of texts, matched in linear time
asking       what gateways ask of workers, and what these answer
===========  =====================================================================================

Each room imports only from those below it; ``topic``, ``options``, ``units``, ``place``,
``hints``, ``backoff``, ``instants``, ``printable`` and ``partitioner`` are small modules that all
of them use.
"""
