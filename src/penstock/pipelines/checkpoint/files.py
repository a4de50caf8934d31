"""The few calls to Hadoop's file systems that PySpark lacks: a checkpoint may be on any of them."""

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["Files"]


class Files:
    """The few calls to Hadoop's file systems that PySpark does not offer."""

    def __init__(self, spark: SparkSession) -> None:
        self._java: Any = spark.sparkContext._jvm  # noqa: SLF001
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, directory: str) -> list[str]:
        """Return the names of the files in a directory; none where there is no such directory."""
        system, path = self._at(directory)
        if not system.exists(path):
            return []
        return [each.getPath().getName() for each in system.listStatus(path)]

    def text(self, file: str) -> str:
        """Return what a file holds."""
        system, path = self._at(file)
        stream = system.open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def data(self, file: str) -> bytes:
        """Return the bytes of a file."""
        system, path = self._at(file)
        stream = system.open(path)
        try:
            return bytes(self._java.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all it holds; nothing happens if there is none."""
        found = self._java.org.apache.hadoop.fs.Path(path)
        found.getFileSystem(self._configuration).delete(found, True)  # noqa: FBT003 - Java's own

    def write(self, file: str, content: str | bytes) -> None:
        """Write a file atomically: it replaces an older one when it is complete."""
        content = content.encode() if isinstance(content, str) else content
        fs = self._java.org.apache.hadoop.fs
        path, unfinished = fs.Path(file), fs.Path(f"{file}.part")
        stream = path.getFileSystem(self._configuration).create(unfinished)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        rename = getattr(fs, "Options$Rename")
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        context = fs.FileContext.getFileContext(path.toUri(), self._configuration)
        context.rename(context.makeQualified(unfinished), context.makeQualified(path), how)

    def modified(self, directory: str) -> dict[str, int]:
        """Return the names of the files in a directory, with their times in milliseconds."""
        system, path = self._at(directory)
        found = system.listStatus(path)
        return {each.getPath().getName(): int(each.getModificationTime()) for each in found}

    def set_modified(self, file: str, at: int) -> None:
        """Set the modification time of a file, in milliseconds, if the file system keeps it."""
        system, path = self._at(file)
        system.setTimes(path, at, -1)

    def make(self, directory: str) -> None:
        """Make a directory, where it is not there, and those above it."""
        system, path = self._at(directory)
        system.mkdirs(path)

    def _at(self, text: str) -> tuple[Any, Any]:
        path = self._java.org.apache.hadoop.fs.Path(text)
        return path.getFileSystem(self._configuration), path
