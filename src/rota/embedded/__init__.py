"""The embedded Valkey: started when no URL is configured, shared by the processes of a folder."""

from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer

__all__ = ["EmbeddedServer"]
