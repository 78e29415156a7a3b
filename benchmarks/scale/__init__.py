"""Large problems, beside what others make of them."""
