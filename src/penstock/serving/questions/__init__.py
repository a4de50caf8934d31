"""A room: questions in, answers out, now or later."""
