"""Questions between the processes of one project: over TCP, to those who know the same secret."""
