"""The autoscaler: observes the queues and workers, decides in `rota.core.autoscaling`, and acts through a provider."""
