"""Files: sources that read them, sinks that write them.

=========  =======================================================================
textfile   a source: the lines of one file, exactly once
jsonfiles  a sink: files of JSON lines, exactly once
=========  =======================================================================
"""
