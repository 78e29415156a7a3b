"""Components: principal, probabilistic and independent ones, scaling, pre-images."""

from mercer.machines.decomposition import ica_fixed_point, probabilistic_pca_em  # noqa: F401  for what it registers
