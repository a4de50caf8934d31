"""Runs all tests as two halves side by side: those that need Spark, and those that do not.

The first half computes and the second mostly waits for brokers, so both together take little longer
than the first alone. Lines of both are printed as they come, and what failed once more at the end.
Arguments are passed on to pytest.
"""

import subprocess
import sys
import threading
from pathlib import Path

HALVES = {"with Spark": "spark", "without Spark": "not spark"}
TOLD_AGAIN = ("FAILED ", "ERROR ")
NO_TESTS = 5
"""Pytest's exit code where arguments choose none of a half."""


class Half:
    """One run of pytest, its lines printed whole."""

    def __init__(self, name: str, marker: str, given: list[str]) -> None:
        self.name = name
        self.told: list[str] = []
        self.last = "it said nothing"
        pytest = Path(sys.executable).with_name("pytest")
        cache = f"cache_dir=.pytest_cache/{marker.replace(' ', '-')}"
        self.process = subprocess.Popen(
            [pytest, "-m", marker, "-o", cache, *given], stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            print(line, end="", flush=True)
            if line.startswith(TOLD_AGAIN):
                self.told.append(line.rstrip())
            self.last = line.strip(" =\n") or self.last

    def wait(self) -> int:
        """Return pytest's exit code when it has ended."""
        self._reader.join()
        return self.process.wait()


def main() -> int:
    """Run both halves; return 0 where both have passed."""
    halves = [Half(name, marker, sys.argv[1:]) for name, marker in HALVES.items()]
    try:
        codes = [half.wait() for half in halves]
    except KeyboardInterrupt:  # which pytest has heard, too
        codes = [half.wait() for half in halves]
    print()
    for half, code in zip(halves, codes, strict=True):
        print(*half.told, sep="\n", end="\n" if half.told else "")
        print(f"{half.name}: {half.last} (exit code {code})")
    ran = [code for code in codes if code != NO_TESTS] or codes
    return next((code for code in ran if code), 0)


if __name__ == "__main__":
    sys.exit(main())
