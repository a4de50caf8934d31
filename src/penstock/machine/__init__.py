"""What must be on the machine: Java, jars, processes, ports, files.

===========  =====================================================================================
configfile   ``penstock.toml`` and the environment, as layers for the settings
java         the locked jars, how they are fetched, and which Java runs them
peers        connections between processes of one application: frames, hosts, visitors
process      programs that never outlive their owner, and the registry of runs
packages     the Python packages that only pipelines need
files        files that are written completely or not at all
locks        locks between processes
places       where Penstock keeps things
ports        free TCP ports
private      directories that only their owner may enter
===========  =====================================================================================

Each room imports only from those below it.
"""
