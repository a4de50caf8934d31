"""A worker: a member of a service's group that takes tasks over, runs them and commits."""
