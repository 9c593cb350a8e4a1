"""Errors that Tidemark raises deliberately.

TidemarkError                1  any error without a more specific class
├── ConfigError              2  config.yaml or the command line is invalid
├── DatasetError             3  the trips cannot be used
├── ProvisionError           4  a wheel, a jar or an archive could not be obtained
│   └── HashMismatch         4  it was obtained, but its hash is not the locked one
├── ServiceError             5  a server did not start, or died
├── StreamError              6  the broker or the producer failed during a run
├── SystemFailure            7  the system under test refused a write
├── OracleError              8  the table does not hold what was acknowledged
├── DiskFull                 9  no space left on the device
├── Locked                  10  another pipeline is running in this folder
├── RebootNeeded            11  the next series waits for a restart of the machine
├── Incomparable            12  two result sets must not be compared
├── MachineError            13  the machine cannot do what the configuration asks
├── AnalysisError           14  run files cannot be read, or are inconsistent
└── CountsDiffer            15  the counts of a commit are not those that were kept

The number is the exit code of a command that ends with that error. 0 is success, and 130 an interruption:
Ctrl-C, SIGTERM or a closed terminal.
A message states what happened, what was found, what is allowed, and what to do next.
"""

from __future__ import annotations

import errno
from typing import ClassVar

NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)


class TidemarkError(Exception):
    """Base class of all errors above; `exit_code` is returned by the command line."""

    exit_code: ClassVar[int] = 1


class ConfigError(TidemarkError):
    exit_code = 2


class DatasetError(TidemarkError):
    exit_code = 3


class ProvisionError(TidemarkError):
    exit_code = 4


class HashMismatch(ProvisionError):
    """Artifact whose SHA-256 is not the locked one; nothing of it is kept."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(
            f"{what}: the lock names sha256 {expected}, the file has sha256 {found}. "
            "The file was removed. If you did not change it, it was changed between you and its registry; "
            "run the command again, and if the hashes still differ do not use it."
        )


class ServiceError(TidemarkError):
    exit_code = 5


class StreamError(TidemarkError):
    exit_code = 6


class SystemFailure(TidemarkError):
    exit_code = 7


class OracleError(TidemarkError):
    exit_code = 8


class DiskFull(TidemarkError):
    exit_code = 9


class Locked(TidemarkError):
    exit_code = 10


class RebootNeeded(TidemarkError):
    exit_code = 11


class Incomparable(TidemarkError):
    exit_code = 12


class MachineError(TidemarkError):
    exit_code = 13


class AnalysisError(TidemarkError):
    exit_code = 14


class CountsDiffer(TidemarkError):
    exit_code = 15


def is_disk_full(error: BaseException | None) -> bool:
    """Return True if `error`, or one of its causes, reports that the device has no space left.

    Libraries wrap the kernel's ENOSPC in their own errors, so the message is checked as well as the number.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left on device" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def of_the_machine(error: Exception) -> TidemarkError | None:
    """Convert `error` to a TidemarkError if its cause is a full disk or an unusable path; return None otherwise."""
    if is_disk_full(error):
        return DiskFull(f"no room left on the device: {error}")
    if isinstance(error, OSError) and error.errno in NOT_ALLOWED and error.filename is not None:
        return MachineError(
            f"{error.filename}: {error.strerror}; this account must be allowed to use it. Mend its owner, mode or "
            "file system, and run the command again."
        )
    if isinstance(error, OSError) and error.errno in IN_THE_WAY and error.filename is not None:
        return MachineError(
            f"{error.filename}: {error.strerror}; Tidemark cannot use this place. Move away what is there, or choose "
            "a shorter name, and run the command again."
        )
    return None
