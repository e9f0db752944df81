"""HTTP middleware and responses that all routes share."""
