"""What a person sees: the terminal, progress bars and log lines, all of it printable."""
