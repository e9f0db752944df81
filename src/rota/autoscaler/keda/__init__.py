"""An external scaler for KEDA: a gRPC service that reports how many workers the queues of a ScaledObject need."""
