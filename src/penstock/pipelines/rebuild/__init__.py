"""A pipeline computed anew beside the running one, and put in its place."""
