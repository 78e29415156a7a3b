"""Pictures of programs: the plane of constraint and objective, and the balance of forces."""
