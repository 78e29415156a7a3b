"""Support vector machines on a kernel matrix: SMO, working sets, Newton finish."""
