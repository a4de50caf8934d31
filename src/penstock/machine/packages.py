"""The Python packages that only pipelines need."""

from importlib.util import find_spec

from penstock.errors import ConfigurationError

__all__ = ["INSTALL_SPARK", "missing_spark_packages", "require_spark"]

INSTALL_SPARK = "pip install 'penstock[spark]'"
_SPARK_PACKAGES = ("pyspark", "pandas", "pyarrow", "grpc")


def missing_spark_packages() -> list[str]:
    """Return the packages for pipelines that are not installed; imports none of them."""
    return [name for name in _SPARK_PACKAGES if find_spec(name) is None]


def require_spark() -> None:
    """Raise ConfigurationError (``spark.missing``) where pipelines cannot run in this Python."""
    if missing := missing_spark_packages():
        raise ConfigurationError(
            "Spark is not installed",
            code="spark.missing",
            detail=f"this Python has no {', '.join(missing)}: pipelines and SQL need them",
            hint=f"run: {INSTALL_SPARK}",
        )
