"""One task of a service: it comes up with its state restored, handles, commits."""
