"""Ridge equations of the full kernel, every row a centre, where K does not fit in memory."""
