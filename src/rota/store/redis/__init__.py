"""The Redis client: connections, clusters and scripts. Knows nothing of jobs."""
