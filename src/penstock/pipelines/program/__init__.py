"""What a checkpoint was made by, and whether the program of today may go on with it."""
