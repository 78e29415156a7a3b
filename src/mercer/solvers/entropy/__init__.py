"""Maximum entropy: Newton steps and iterative scaling."""
