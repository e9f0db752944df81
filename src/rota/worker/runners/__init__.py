"""Runners: the processes that run handlers, and their pool."""
