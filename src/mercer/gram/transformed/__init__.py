"""K centred, scaled, shifted, restricted to rows, or mixed from others."""
