"""What the process behind a page does: one file for each kind of request."""
