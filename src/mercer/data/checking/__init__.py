"""What is wrong with a table before anything is learnt from it."""
