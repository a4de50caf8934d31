"""Files: sources that read them, sinks that write them.

=========  =======================================================================
textfile   a source: the lines of one file, exactly once
directory  a source: the files of a directory, each of them a split
rotated    a source: the lines of a log that grows and is rotated
formats    what files hold, as items: lines, JSON lines, CSV, Parquet, compressed or not
jsonfiles  sinks: files of JSON lines, CSV and Parquet, exactly once
written    how a sink writes complete files, whatever their layout
layouts    how records stand in a file
=========  =======================================================================
"""
