"""The cost of encryption for a producer and a worker: encoding and decoding one job, with and without keys.

`python -m benchmarks.encryption` prints µs per job, the least of several rounds. No server is involved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rota import Encrypted, Rota
from rota.client.encryption import new_key
from rota.core.encrypted_values import decrypt_arguments, decrypt_result, encrypt_result

SIZES: Final = (100, 1_000, 10_000, 100_000)
ROUNDS: Final = 7


def measure(codec: Encrypted | None, size: int) -> float:
    """µs for the arguments and the result of one job: encoded, and decoded again."""
    rota = Rota("redis://nowhere", codec=codec)

    @rota.task
    def example(text: str) -> str:
        return text

    text = "x" * size
    result = f'"{text}"'.encode()

    def job() -> None:
        arguments = example.call(text).job.body.split(b"\n", 2)[2]
        if codec is None:
            example.signature.decode(arguments)
        else:
            example.signature.decode(decrypt_arguments(codec, "example", arguments))
            decrypt_result(codec, "q:1@2", encrypt_result(codec, "q:1@2", result))

    return least(job, 20_000_000 // (size + 10_000))


def least(job: Callable[[], None], count: int) -> float:
    """µs of CPU time per call in the fastest round."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(count):
            job()
        rounds.append((time.process_time() - start) / count * 1e6)
    return min(rounds)


def main() -> None:
    """Prints a table."""
    codec = Encrypted([new_key()])
    print(f"{'bytes':>9} {'plain µs':>10} {'encrypted µs':>13} {'added µs':>9}")
    for size in SIZES:
        plain, encrypted = measure(None, size), measure(codec, size)
        print(f"{size:>9,} {plain:>10.1f} {encrypted:>13.1f} {encrypted - plain:>9.1f}")


if __name__ == "__main__":
    main()
