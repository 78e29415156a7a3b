"""Support vector machines: duality gap and KKT conditions."""
