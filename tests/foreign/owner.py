"""Whose a loopback connection is: the program that holds its other end. Linux tells in /proc."""

import os
from pathlib import Path


def owner_of(peer: tuple[str, int], here: tuple[str, int]) -> str:
    """The command line of the process whose socket is bound to `peer` and connected to `here`."""
    inode = _inode(_spelt(peer), _spelt(here))
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(entry) == f"socket:[{inode}]" for entry in (process / "fd").iterdir()):
                return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass  # the process, or that file of its, has just gone
    return "nobody"


def _spelt(address: tuple[str, int]) -> str:
    octets = [int(octet) for octet in address[0].split(".")]
    return "".join(f"{octet:02X}" for octet in reversed(octets)) + f":{address[1]:04X}"


def _inode(local: str, remote: str) -> str:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == [local, remote]:
            return fields[9]
    return ""
