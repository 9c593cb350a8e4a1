"""Launcher of servers that cannot outlive Tidemark: `python -I -S launch.py PARENT UID|- COMMAND...`.

A separate program that uses only the standard library: between fork and exec of a threaded process only system calls
are safe, while after exec of this file everything is. It asks the kernel to kill the server when the thread that
started it ends, drops root privileges if given an account, allows the server to use all processors, and then becomes
the server.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_CAPBSET_READ, PR_SET_SECUREBITS, PR_CAP_AMBIENT = 1, 23, 28, 47
SECBIT_NO_SETUID_FIXUP = 1 << 2
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
LINUX_CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: int) -> int:
    padded = [*arguments, 0, 0, 0, 0][:4]
    result = int(libc.prctl(option, *[ctypes.c_ulong(a) for a in padded]))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
    return result


def drop_root(account: int) -> None:
    """Switch to `account`, keeping one capability: to enter folders that only their owner may enter.

    The workspace is private to root; without the capability the server could not reach its data directory.
    A container that withholds the narrow capability usually grants the wider one; without either, the
    server starts anyway, and its error message names the folder that it could not enter.
    """
    available = [c for c in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE) if prctl(PR_CAPBSET_READ, c)]
    # This keeps capabilities across the change of account until they are set below, and makes access(2), with which
    # PostgreSQL looks for its own binaries, respect them.
    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setresgid(account, account, account)
    os.setresuid(account, account, account)
    only = 1 << available[0] if available else 0
    header = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable sets: first for capabilities 0 to 31, then for the others.
    sets = (ctypes.c_uint32 * 6)(only, only, only, 0, 0, 0)
    if libc.capset(header, sets) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"capset: {os.strerror(number)}")
    if available:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, available[0])


def use_every_processor() -> None:
    """Allow the server to run on all processors: its parent may be pinned to a few, which it would inherit.

    The kernel ignores processors that are offline or not granted to Tidemark. A complete refusal is logged.
    """
    try:
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    except OSError as error:
        print(f"tidemark: the processors stay as inherited: {error}", file=sys.stderr, flush=True)


def main() -> None:
    parent, account, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o077)
    use_every_processor()
    if account != "-":
        drop_root(int(account))
    # A change of account clears this request, so it comes last; the parent may have died in the meantime.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
