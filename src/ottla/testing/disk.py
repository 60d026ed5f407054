"""A disk in memory that crashes, loses and tears writes, fills up and is slow, all from a seed.

It guarantees what `ottla.log.disk` requires of a disk, and nothing more:

* A **process kill** (`crash(power_loss=False)`) keeps every write that had returned. The interrupted call may have been
  carried out in part: a write only up to some byte.
* A **power loss** (`crash(power_loss=True)`) may also lose what was not synced. Each unsynced page of a file is new or
  old, or torn at a sector; the length is between the synced and the last one, with zeros for missing pages. Of the
  unsynced name changes in a directory, a first part has happened and the rest has not.

`crash_at` is the number of the operation, counted from now on, that does not return: it raises `Crash`, and so do all
operations after it, until `crash` has made the disk for the next start. `capacity_bytes` makes writes fail with ENOSPC
after writing what fits. Each sync adds `sync_ms` to `waited_ms`, for tests that have a clock.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from typing import Final

from ottla.log.disk import Buffer, DiskEntry, Lock

__all__ = ["Crash", "VirtualDisk", "VirtualFile"]

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512


class Crash(BaseException):
    """The machine or the process stops here. Not an Exception, so that no code of the product handles it."""


class _Node:
    """A file's content, apart from its name: an open file can be renamed or unlinked."""

    __slots__ = ("content", "modified_ms", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = b""
        self.modified_ms = 0


class VirtualFile:
    """An open file of a VirtualDisk."""

    __slots__ = ("_disk", "_node", "path")

    def __init__(self, disk: VirtualDisk, node: _Node, path: str) -> None:
        self._disk = disk
        self._node = node
        self.path = path

    def read(self, size: int, position: int) -> bytes:
        self._disk.check_alive()
        return bytes(self._node.content[position : position + size])

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        room = self._disk.room_bytes(position + len(data) - len(self._node.content))
        taken = data if room is None else data[: max(0, len(self._node.content) - position) + room]
        if self._disk.is_next_fatal():
            taken = taken[: self._disk.random.randint(0, len(taken))]
        self._put(taken, position)
        self._disk.count("write", self.path)
        if len(taken) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", self.path)

    def _put(self, data: bytes, position: int) -> None:
        content = self._node.content
        if position > len(content):
            content += bytes(position - len(content))
        content[position : position + len(data)] = data
        self._node.modified_ms = self._disk.now_ms

    def truncate(self, size: int) -> None:
        self._disk.count("truncate", self.path)
        content = self._node.content
        if size <= len(content):
            del content[size:]
        else:
            content += bytes(size - len(content))
        self._node.modified_ms = self._disk.now_ms

    def size(self) -> int:
        self._disk.check_alive()
        return len(self._node.content)

    def sync(self) -> None:
        self._disk.count("sync", self.path)
        self._disk.waited_ms += self._disk.sync_ms
        self._node.synced = bytes(self._node.content)

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a file in memory has no number")


class _NoLock:
    def release(self, *, remove: bool) -> None:
        pass


class VirtualDisk:
    """A `Disk` in memory. `random` decides what a crash leaves, so the seed decides everything."""

    def __init__(self, seed: int | random.Random = 0, *, capacity_bytes: int | None = None, sync_ms: int = 0) -> None:
        self.random = seed if isinstance(seed, random.Random) else random.Random(seed)
        self.capacity_bytes = capacity_bytes
        self.sync_ms = sync_ms
        self.waited_ms = 0
        self.now_ms = 0
        self.operations = 0
        self.crash_at: int | None = None
        self._is_down = False
        self._files: dict[str, _Node] = {}
        self._directories: dict[str, None] = {"": None, "/": None}
        # By directory: the names that a power loss would leave, and the changes since.
        self._synced_files: dict[str, _Node] = {}
        self._changes: dict[str, list[tuple[str, _Node | None]]] = {}

    # --- counting and crashing ----------------------------------------------------------------------------------------

    def check_alive(self) -> None:
        if self._is_down:
            raise Crash

    def is_next_fatal(self) -> bool:
        """Whether the current operation is the one that does not return."""
        self.check_alive()
        return self.crash_at is not None and self.operations + 1 >= self.crash_at

    def count(self, what: str, path: str) -> None:
        """Count an operation; raises Crash if it is the fatal one. The caller decides when it takes effect."""
        fatal = self.is_next_fatal()
        self.operations += 1
        if fatal:
            self._is_down = True
            raise Crash(f"operation {self.operations}: {what} {path}")

    def room_bytes(self, growth: int) -> int | None:
        """How many of the additional bytes fit; None if all do."""
        if self.capacity_bytes is None or growth <= 0:
            return None
        used = sum(len(node.content) for node in self._files.values())
        free = self.capacity_bytes - used
        return None if growth <= free else max(0, free)

    def crash(self, *, power_loss: bool) -> VirtualDisk:
        """The disk after the crash, for the next start."""
        after = self._empty()
        after.now_ms = self.now_ms
        after._directories = dict(self._directories)
        names = self._surviving_names() if power_loss else dict(self._files)
        for path, node in names.items():
            survivor = after._files[path] = _Node()
            survivor.content = self._surviving_content(node) if power_loss else bytearray(node.content)
            survivor.modified_ms = node.modified_ms
            # After a kill the page cache is still there, and still not synced.
            survivor.synced = bytes(survivor.content) if power_loss else node.synced
        # After a kill some names are still not synced; a later power loss may lose them.
        kept = names if power_loss else [path for path in names if path in self._synced_files]
        after._synced_files = {path: after._files[path] for path in kept}
        for path in names:
            if path not in after._synced_files:
                after._note(path, after._files[path])
        return after

    def _empty(self) -> VirtualDisk:
        """A disk of the same kind, with nothing on it."""
        return VirtualDisk(self.random, capacity_bytes=self.capacity_bytes, sync_ms=self.sync_ms)

    def synced(self, path: str) -> bytes | None:
        """The content of a file when it was last synced; None if a power loss would not even leave its name."""
        node = self._synced_files.get(path)
        return None if node is None else node.synced

    def synced_paths(self, directory: str) -> list[str]:
        """The files in a directory that a power loss would leave."""
        prefix = f"{directory}/"
        return [path for path in self._synced_files if path.startswith(prefix)]

    def _surviving_names(self) -> dict[str, _Node]:
        names = dict(self._synced_files)
        for changes in self._changes.values():
            for path, node in changes[: self.random.randint(0, len(changes))]:
                if node is None:
                    names.pop(path, None)
                else:
                    names[path] = node
        return names

    def _surviving_content(self, node: _Node) -> bytearray:
        old, new = node.synced, bytes(node.content)
        if old == new:
            return bytearray(new)
        shorter, longer = sorted((len(old), len(new)))
        length = self.random.randint(shorter, longer) if self.random.random() < 0.7 else len(new)
        content = bytearray(length)
        for start in range(0, length, PAGE_BYTES):
            self._survive_page(content, old, new, start, min(start + PAGE_BYTES, length))
        return content

    def _survive_page(self, content: bytearray, old: bytes, new: bytes, start: int, end: int) -> None:
        """A page is the new one, the old one, or torn at a sector between the two."""
        fate = self.random.random()
        border = end if fate < 0.6 else start
        if fate >= 0.85:
            border = start + self.random.randrange(0, PAGE_BYTES, SECTOR_BYTES)
        for source, low, high in ((new, start, min(border, end)), (old, min(border, end), end)):
            piece = source[low:high]
            content[low : low + len(piece)] = piece

    # --- the disk -----------------------------------------------------------------------------------------------------

    def _note(self, path: str, node: _Node | None) -> None:
        self._changes.setdefault(_parent(path), []).append((path, node))

    def open(self, path: str, *, create: bool = False) -> VirtualFile:
        self.check_alive()
        node = self._files.get(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            if _parent(path) not in self._directories:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", _parent(path))
            self.count("create", path)
            node = self._files[path] = _Node()
            node.modified_ms = self.now_ms
            self._note(path, node)
        return VirtualFile(self, node, path)

    def list_directory(self, path: str) -> list[DiskEntry]:
        self.check_alive()
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        files = [
            DiskEntry(name.rpartition("/")[2], False, len(node.content), node.modified_ms)
            for name, node in self._files.items()
            if _parent(name) == path
        ]
        inner = [
            DiskEntry(name.rpartition("/")[2], True, 0, 0)
            for name in self._directories
            if name not in ("", "/") and _parent(name) == path
        ]
        return files + inner

    def exists(self, path: str) -> bool:
        self.check_alive()
        return path in self._files or path in self._directories

    def modified_ms(self, path: str) -> int:
        return self._node(path).modified_ms

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._node(path).modified_ms = modified_ms

    def make_read_only(self, path: str) -> None:
        self._node(path)  # it must exist; permissions are not simulated

    def _node(self, path: str) -> _Node:
        self.check_alive()
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return self._files[path]

    def rename(self, source: str, target: str) -> None:
        self.check_alive()
        if source in self._directories:
            self._rename_directory(source, target)
            return
        node = self._node(source)
        self.count("rename", target)
        del self._files[source]
        self._files[target] = node
        self._note(target, node)
        self._note(source, None)

    def _rename_directory(self, source: str, target: str) -> None:
        """Directories move with their content, and are synced at once: the log needs no more."""
        self.count("rename", target)
        for names in (self._files, self._synced_files):
            for name in [name for name in names if name.startswith(f"{source}/")]:
                names[target + name.removeprefix(source)] = names.pop(name)
        self._directories = {
            target + name.removeprefix(source) if name == source or name.startswith(f"{source}/") else name: None
            for name in self._directories
        }
        for changes in [self._changes.pop(name) for name in list(self._changes) if name.startswith(source)]:
            for path, node in changes:
                self._note(target + path.removeprefix(source), node)

    def unlink(self, path: str) -> None:
        self._node(path)
        self.count("unlink", path)
        del self._files[path]
        self._note(path, None)

    def make_directory(self, path: str) -> None:
        self.check_alive()
        while path not in self._directories:
            self._directories[path] = None
            path = _parent(path)

    def lock_directory(self, path: str) -> Lock:
        """Nobody else can have it: the disk is this test's own."""
        return _NoLock()

    def remove_directory(self, path: str) -> None:
        if any(_parent(name) == path for name in self._files):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self.count("rmdir", path)
        self._directories.pop(path, None)

    def sync_directory(self, path: str) -> None:
        self.count("sync directory", path)
        self.waited_ms += self.sync_ms
        for name, node in self._changes.pop(path, []):
            if node is None:
                self._synced_files.pop(name, None)
            else:
                self._synced_files[name] = node


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
