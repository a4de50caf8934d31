"""One record in, its outputs out: the user's code with its state, its errors and its retries."""
