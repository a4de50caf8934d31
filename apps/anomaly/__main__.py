"""``python -m apps.anomaly``: what the application can do without a broker.

python -m apps.anomaly score IN_DIR OUT_DIR    scores every series under IN_DIR
"""

import argparse
import sys
from pathlib import Path

from apps.anomaly.series.files import SeriesError, score_directory


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(prog="anomaly", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    score = verbs.add_parser("score", help="score every series (timestamp, value) in a directory")
    score.add_argument("source", type=Path, metavar="IN_DIR")
    score.add_argument("target", type=Path, metavar="OUT_DIR")
    given = parser.parse_args(arguments)
    try:
        count = score_directory(given.source, given.target)
    except (SeriesError, OSError) as error:
        print(f"anomaly: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{count} series scored into {given.target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
