"""Cases of live queries in the test driver, on a grid of three rows and three columns."""

from live_form import REFUSED, Case, Followed, Outcome, asked, declared, row_of

from penstock import App
from penstock.testing import Driver

__all__ = ["DriverEngine"]


class DriverEngine:
    """Runs each case as an application of its own."""

    def __init__(self, size: int = 3) -> None:
        self._size = size

    def run(self, cases: list[Case]) -> list[Outcome]:
        """Return the outcome of each case."""
        return [self._run(case) for case in cases]

    def close(self) -> None:
        """There is nothing to end."""

    def _run(self, case: Case) -> Outcome:
        if (query := case.query()) is None:
            return Outcome(case.expected, [REFUSED])
        app = App("cases")
        table, live = declared(app, size=self._size)
        driver = Driver(app, partitions=self._size)
        followed = Followed(case, query)
        for document in case.before:
            driver.pipe(table, row_of(document))
        driver.pipe(live.asked, asked(case, "one"))
        followed.step(driver.read(live.news))
        for operation, given in case.writes:
            if operation == "delete":
                driver.delete(table, row_of({"_id": given}).id)
            else:
                driver.pipe(table, row_of(given))
            followed.step(driver.read(live.news))
        if letters := driver.dead_letters():
            raise AssertionError(f"{case.id}: {letters[0].reason}")
        return followed.end()
