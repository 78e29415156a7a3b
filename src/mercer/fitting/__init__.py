"""From a table to a model: prepare, choose, tune, calibrate, certify."""
