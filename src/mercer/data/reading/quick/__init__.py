"""Quick ways through the easy cases of delimited text; what they refuse goes the careful way."""
