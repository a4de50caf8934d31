"""Aggregations of tables: a changed row is taken out of its old group and put into its new one.

===========  =====================================================================================
grouping     the declaration
changes      from a change of a row to what its groups lose and gain
totals       what a group holds, and its row of results
holding      results that are held back
columns      one aggregate of a group, with subtraction
sums         sums and variances that values are subtracted from without a trace
merged       what a combiner that cannot subtract makes of the values, page by page
===========  =====================================================================================
"""
