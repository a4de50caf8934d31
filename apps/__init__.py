"""Applications that come with Penstock; they use its public names only."""
