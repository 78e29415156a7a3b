"""What the drop-in classes share."""
