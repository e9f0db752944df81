"""The embedded Valkey: started when no URL is configured, shared by the processes of a folder."""

from rota.embedded.launcher import EmbeddedServer

__all__ = ["EmbeddedServer"]
