from tests.worker.fixtures import harness, shared, shared_harness

__all__ = ["harness", "shared", "shared_harness"]
