"""Tours: each method of the texts in a few frames, to play, step through and rewind."""
