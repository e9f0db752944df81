"""The smallest program. There is no server to install: `Rota()` starts an embedded one.

rota worker quickstart:rota &      # runs jobs until it is stopped
python quickstart.py               # Hello, world!
"""

from rota import Rota

rota = Rota()


@rota.task
def greet(name: str) -> str:
    """Runs in the worker."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    print(greet.enqueue_sync("world").result_sync(timeout=30))
