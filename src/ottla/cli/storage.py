"""`ottla storage`: formats, shows and checks log directories."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure
from ottla.cli.verbosity import is_quiet

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.controller.storage_check import StorageCheck
    from ottla.core.quorum.voters import VoterSet
    from ottla.wire.keyed import Versioned

_EXIT_PROBLEMS = 1
_LARGE_BYTES = 256 << 20


@click.group()
def storage() -> None:
    """Format, inspect and check log directories."""


@storage.command("format")
@click.option("--data", type=click.Path(file_okay=False), help="The directory to format.")
@click.option("--config", type=click.Path(dir_okay=False), help="A server.properties file that names the directories.")
@click.option("--cluster-id", help="The cluster id: 22 characters, as Kafka's. [random]")
@click.option("--standalone", is_flag=True, help="The node is the only controller. [default if no other is configured]")
@click.option(
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY_ID,…",
    help="The first controllers of a new cluster, including this one; the same list on all of them.",
)
@click.option("--no-initial-controllers", is_flag=True, help="The node joins a cluster that already has controllers.")
@click.option("--feature", "features", multiple=True, metavar="NAME=LEVEL", help="The level of a feature; repeatable.")
@click.option(
    "--add-scram",
    "users",
    multiple=True,
    metavar="MECHANISM=[name=USER,password=…]",
    help="A user with SCRAM credentials, in the syntax of kafka-storage.",
)
@click.option("--node-id", type=click.IntRange(0), help="The node's id. [1]")
@click.option("--ignore-formatted", is_flag=True, help="Skip directories that are formatted already.")
def format_(
    data: str | None,
    config: str | None,
    cluster_id: str | None,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    features: Sequence[str],
    users: Sequence[str],
    node_id: int | None,
    ignore_formatted: bool,
) -> None:
    """Format the log directories of a node.

    The result is the same as that of Apache Kafka's tool.
    """
    from ottla.broker.config.node_config import ConfigError, NodeConfig, file_settings

    if (data is None) == (config is None):
        raise Failure("no directory given", "give --data DIR or --config FILE")
    try:
        places = [file_settings(config)] if config else [{"log.dirs": os.path.abspath(data or "")}]
        if node_id is not None:
            places.append({"node.id": str(node_id)})
        node_config = NodeConfig(*places)
        _check_cluster_id(cluster_id)
        voters = _voters(node_config, standalone, initial_controllers, no_initial_controllers)
        if voters is not None and cluster_id is None:
            raise Failure("all nodes of a cluster need the same cluster id", "give --cluster-id ID")
        is_unstable = node_config["unstable.feature.versions.enable"]
        levels = _levels(features, is_dynamic=not node_config.voters, is_unstable=is_unstable)
        credentials = _credentials(users, levels)
    except ConfigError as error:
        raise Failure(str(error)) from None
    from ottla.broker.replicas.formatter import format_directories, is_formatted
    from ottla.broker.replicas.storage import StorageProblem, lock_directories, release
    from ottla.log.disk import OsDisk

    disk = OsDisk()
    formatted = [path for path in node_config.all_dirs if is_formatted(disk, path)]
    if formatted and not ignore_formatted:
        raise Failure(f"{formatted[0]} is formatted already", "--ignore-formatted skips such directories")
    try:
        locks = lock_directories(disk, node_config.all_dirs)
    except StorageProblem as error:
        raise Failure(str(error)) from None
    try:
        now_ms = time.time_ns() // 1_000_000
        made = format_directories(
            disk,
            node_config,
            now_ms,
            cluster_id=cluster_id,
            levels=levels,
            voters=voters,
            credentials=credentials,
        )
    except OSError as error:
        raise Failure(f"the directory cannot be written: {error}") from None
    finally:
        release(locks, remove=True)
    for path in node_config.all_dirs:
        word = (
            "already formatted, unchanged"
            if path in formatted
            else f"formatted for node {node_config.node_id} of cluster {made}"
        )
        click.echo(f"{path}: {word}")


def _check_cluster_id(cluster_id: str | None) -> None:
    from ottla.wire import uuid_bytes

    if cluster_id is None:
        return
    try:
        uuid_bytes(cluster_id)
    except ValueError as error:
        raise Failure(f"{cluster_id} is not a cluster id: {error}") from None


def _voters(config: NodeConfig, standalone: bool, initial: str | None, no_initial: bool) -> VoterSet | None:
    """The first voters that were asked for; None if the node is the only one, or if the configuration has them."""
    from ottla.core.quorum.initial_controllers import read_initial_controllers
    from ottla.core.quorum.voters import VoterSet

    choices = {"--standalone": standalone, "--initial-controllers": initial, "--no-initial-controllers": no_initial}
    chosen = [name for name, is_given in choices.items() if is_given]
    if len(chosen) > 1:
        raise Failure(f"{' and '.join(chosen)} exclude each other")
    if config.voters:
        if chosen:
            raise Failure(f"controller.quorum.voters fixes the controllers; leave out {chosen[0]} or that setting")
        return None
    if not chosen and (others := config.other_controllers()):
        raise Failure(
            f"the configuration names other controllers ({', '.join(others)})",
            "choose how they start: --initial-controllers LIST, --no-initial-controllers or --standalone",
        )
    if no_initial:
        return VoterSet()
    if initial is None:
        return None
    try:
        voters = read_initial_controllers(initial, config.controller_listener)
    except ValueError as error:
        raise Failure(f"--initial-controllers: {error}") from None
    if config.node_id not in voters.ids:
        raise Failure(
            f"--initial-controllers has no entry for this node, {config.node_id}",
            "a node that joins later is formatted with --no-initial-controllers",
        )
    return voters


def _credentials(users: Sequence[str], levels: Mapping[str, int]) -> list[Versioned]:
    if not users:
        return []
    from ottla.cli.scram import credential
    from ottla.core.metadata.features import METADATA_VERSION, SCRAM_FROM

    if levels[METADATA_VERSION] < SCRAM_FROM:
        raise Failure("this metadata.version does not support SCRAM credentials", "leave out --add-scram or --feature")
    return [credential(user) for user in users]


def _levels(features: Sequence[str], *, is_dynamic: bool, is_unstable: bool) -> dict[str, int]:
    from ottla.core.metadata.features import METADATA_VERSION, FeatureError, levels_for_format, metadata_version_of

    wanted: dict[str, int] = {}
    try:
        for feature in features:
            name, equals, level = feature.partition("=")
            if not equals:
                raise Failure(f"--feature {feature} has no level", "write --feature NAME=LEVEL")
            if name == METADATA_VERSION:
                wanted[name] = metadata_version_of(level)
            elif level.isascii() and level.isdecimal():
                wanted[name] = int(level)
            else:
                raise Failure(f"--feature {feature}: a level is a number")
        return levels_for_format(wanted, is_dynamic_quorum=is_dynamic, is_unstable=is_unstable)
    except FeatureError as error:
        raise Failure(str(error)) from None


@storage.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
def info(directory: str) -> None:
    """Show the node and cluster of a directory, and its content."""
    found = _check(directory, is_deep=False)
    if found.directory is None:
        raise Failure(found.findings[0].text)
    from ottla.wire import uuid_text

    properties = found.directory.properties
    directory_id = properties.directory_id
    lines = {
        "cluster": properties.cluster_id,
        "node": properties.node_id,
        "directory": uuid_text(directory_id) if directory_id is not None else "no id",
        "last stop": "clean" if found.directory.is_clean else "not clean",
    }
    if found.metadata is not None:
        image, control = found.metadata.image, found.metadata.control
        levels = {**image.features, "kraft.version": control.kraft_version}
        lines["features"] = " ".join(f"{name}={level}" for name, level in sorted(levels.items()))
        lines["voters"] = " ".join(map(str, control.voters.ids)) or "none"
        lines["metadata"] = f"offset {image.last_offset} epoch {image.last_epoch}"
        lines["topics"] = f"{len(image.topics_by_id)} with {sum(1 for _ in image.partitions())} partitions"
    lines["partitions here"] = f"{len(found.directory.found)} with {found.log_bytes} bytes"
    for name, value in lines.items():
        click.echo(f"{name}: {value}")


@storage.command()
@click.argument("directories", type=click.Path(exists=True, file_okay=False), nargs=-1, required=True, metavar="DIR...")
@click.option("--deep", is_flag=True, help="Read all data, not only the ends of logs.")
def check(directories: Sequence[str], deep: bool) -> int:
    """Check whether Apache Kafka and ottla can start on directories without losing data.

    Nothing is changed. The nodes must be stopped. Given the directories of several nodes, it also checks whether these
    nodes can form their cluster again. The exit code is 1 if there are problems.
    """
    with _locked(directories):
        checks, together = _check_cluster(directories, is_deep=deep)
    for path, found in zip(directories, checks, strict=True):
        for finding in found.findings:
            where = f"{path}: " if len(checks) > 1 else ""
            click.echo(f"{finding.level}: {where}{finding.text}")
    for finding in together.findings:
        click.echo(f"{finding.level}: {finding.text}")
    subject = directories[0] if len(checks) == 1 else f"{len(checks)} directories"
    if any(each.has_problems for each in (*checks, together)):
        click.echo(f"{subject}: cannot be started; see the problems above")
        return _EXIT_PROBLEMS
    click.echo(f"{subject}: Apache Kafka 4.3 and ottla can start on {'it' if len(checks) == 1 else 'them'}")
    return 0


def _check(directory: str, *, is_deep: bool) -> StorageCheck:
    from ottla.broker.controller.storage_check import check_storage
    from ottla.log.disk import OsDisk

    path = os.path.abspath(directory)
    try:
        with _progress([path]) as progress:
            return check_storage(OsDisk(), path, is_deep=is_deep, progress=progress)
    except OSError as error:
        raise Failure(
            f"{error.filename or path} cannot be read: {error.strerror}",
            "if a node is using the directory, files come and go: try again",
        ) from None


def _check_cluster(directories: Sequence[str], *, is_deep: bool) -> tuple[list[StorageCheck], StorageCheck]:
    """What is found in each directory, and in all of them together. One alone is not judged as a cluster."""
    from ottla.broker.controller.cluster_storage_check import check_cluster_storage
    from ottla.broker.controller.storage_check import StorageCheck
    from ottla.log.disk import OsDisk

    if len(directories) == 1:
        return [_check(directories[0], is_deep=is_deep)], StorageCheck(directories[0])
    paths = [os.path.abspath(each) for each in directories]
    with _progress(paths) as progress:
        return check_cluster_storage(OsDisk(), paths, is_deep=is_deep, progress=progress)


@contextlib.contextmanager
def _locked(directories: Sequence[str]) -> Iterator[None]:
    """Holds the locks of directories; leaves no files behind that were not there."""
    from ottla.broker.replicas.storage import StorageProblem, lock_directories, release
    from ottla.log.disk import OsDisk

    with contextlib.ExitStack() as stack:
        for directory in directories:
            had_lock = os.path.exists(os.path.join(directory, ".lock"))
            try:
                locks = lock_directories(OsDisk(), [directory])
            except StorageProblem as error:
                raise Failure(str(error)) from None
            stack.callback(release, locks, remove=not had_lock)
        yield


@contextlib.contextmanager
def _progress(paths: Sequence[str]) -> Iterator[Callable[[str], object]]:
    """Shows what is being checked, if that takes long."""
    if is_quiet() or not any(map(_is_large, paths)):
        yield str
        return
    from rich.console import Console

    with Console(stderr=True).status("looking") as status:
        yield lambda what: status.update(f"checking {what}")


def _is_large(path: str) -> bool:
    """Whether the check takes long enough to show its progress."""
    size = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile, or a link to nothing
                size += os.path.getsize(os.path.join(folder, name))
        if size > _LARGE_BYTES:
            return True
    return False
