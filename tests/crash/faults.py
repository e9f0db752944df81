"""All faults of the fault-injection suite, by name."""

from __future__ import annotations

from typing import Final

from tests.crash import group_faults, network_faults, process_faults, server_faults
from tests.crash.fault_registry import FAULTS

#: Their import lists the faults.
MODULES: Final = (process_faults, server_faults, network_faults, group_faults)

__all__ = ["FAULTS", "MODULES"]
