"""Sections of a report: each file writes one, from what is known about the fit."""
