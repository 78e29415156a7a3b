"""Tables: readers, kinds of columns, checks, and what turns them into numbers."""
