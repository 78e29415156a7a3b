"""From tables to models, and programs of others."""
