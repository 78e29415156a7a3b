"""Lloyd's steps, seeding, relaxations, maximum flow."""
