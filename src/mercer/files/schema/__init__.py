"""What a model file may hold: every class by name, every field with its type."""
