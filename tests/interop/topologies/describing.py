"""What the real library says of several applications: `python -m tests.interop.topologies.describing` writes the files.

They lie in tests/golden/topologies; the test beside this one sees that the library still says the same.
"""

from pathlib import Path

from tests.interop import process
from tests.interop.jars import APACHE_KAFKA, classpath, program

SOURCES = Path(__file__).parent / "java"
GOLDEN = Path(__file__).parents[2] / "golden" / "topologies"
_QUIET = {"org.slf4j.simpleLogger.defaultLogLevel": "error"}


def write_descriptions(folder: Path, classes: Path) -> None:
    """One file for each application; the program is compiled into `classes`."""
    jars = classpath(APACHE_KAFKA)
    sources = map(str, sorted(SOURCES.rglob("*.java")))
    javac = program("javac", "a Java development kit")
    process.run([javac, "-Xlint:all", "-Werror", "--release", "17", "-cp", jars, "-d", str(classes), *sources])
    path = classpath(APACHE_KAFKA, classes)
    command = process.java(path, "topologies.Describe", str(folder), options=process.QUICK_START, properties=_QUIET)
    process.run(command)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as classes:
        write_descriptions(GOLDEN, Path(classes))
