"""Request and response bodies, one module per resource as in `routes`.

The OpenAPI document and the dashboard's types are generated from them. Times are ISO 8601 in UTC. Arguments and results
are JSON texts, so that no number loses a digit in a language whose numbers are floats.
"""
