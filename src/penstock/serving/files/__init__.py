"""Files over HTTP: those of a directory, each read when it is asked for, and never another one."""
