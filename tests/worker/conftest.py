from tests.worker.fixtures import crew, lodging, shared

__all__ = ["crew", "lodging", "shared"]
