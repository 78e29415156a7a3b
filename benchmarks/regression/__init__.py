"""Ridge regression and Gaussian processes against their rivals."""
