"""How good the model of drives is on drives that it was not trained on: five folds, whole drives.

python bench/anomaly/drives.py FILE.csv.gz
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import os
import random
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from apps.anomaly.drives.files import read_days
from apps.anomaly.drives.replay import Drive, outcome, replay
from apps.anomaly.drives.training import train
from pyspark.sql import SparkSession

FOLDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    days = read_days(options.file)
    failed = {values.serial for values, fails in days if fails}
    folds: dict[str, int] = {}
    chance = random.Random(options.seed)
    for group in (failed, {values.serial for values, _ in days} - failed):
        shuffled = sorted(group)
        chance.shuffle(shuffled)
        folds |= {serial: number % FOLDS for number, serial in enumerate(shuffled)}
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    found: list[Drive] = []
    for fold in range(FOLDS):
        learnt = [day for day in days if folds[day[0].serial] != fold]
        judged = [day for day in days if folds[day[0].serial] == fold]
        found += replay(judged, train(spark, learnt)).values()
    spark.stop()
    for line in outcome(found).lines():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
