"""What several tests have in common."""
