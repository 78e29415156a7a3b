"""Support vector machines against their rivals."""
