"""What turns the columns of a table into numbers, by their kinds."""
