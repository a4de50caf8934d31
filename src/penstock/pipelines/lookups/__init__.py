"""Tables beside a stream, kept on the driver's disk: a batch reads only the rows it asks for."""
