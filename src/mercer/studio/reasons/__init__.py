"""Why a machine answers as it does at one point: sums over points, and shares of other parts."""
