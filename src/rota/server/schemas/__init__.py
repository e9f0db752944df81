"""What the API takes and gives, field by field: the OpenAPI document, and the dashboard's types, follow from this.

Seed 2's fields are as it shows them: `data`, `retries`, `progress` and `created_at` are texts. What Rota adds stands
beside them. Times are ISO 8601 in UTC. One module per resource, as `routes` has them.
"""
