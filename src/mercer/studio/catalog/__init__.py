"""What the studio offers: machines by task, their parameters, kernels, presets."""
