"""What a fitted machine looks like: surfaces, curves, and the layers over them."""
