"""From an expression to what compiled loops run: programs, operands, rounding bounds."""
