"""Support vector machines as box programmes."""
