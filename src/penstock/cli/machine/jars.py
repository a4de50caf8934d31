"""``penstock jars``: download jars into the cache, verify them, and archive their classes."""

import argparse

from penstock.cli.arguments import add_json, add_verb, command
from penstock.cli.session import Session
from penstock.errors import ConfigurationError
from penstock.machine.java.classarchive import archives_dir
from penstock.machine.java.jars import JarSet, jar_paths, jars_dir, locked_jars, missing_jars
from penstock.machine.packages import require_spark

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and their arguments."""
    verbs = parser.add_subparsers(metavar="fetch|list|verify|archive", required=True)
    fetch = add_verb(verbs, "fetch", "download missing jars into the cache")
    fetch.add_argument("--mirror", metavar="URL", help="the Maven repository to use")
    listing = add_verb(verbs, "list", "show which jars are needed, and which are there")
    verify = add_verb(verbs, "verify", "compare every byte in the cache with the list")
    for verb, run in ((fetch, _fetch), (listing, _list), (verify, _verify)):
        verb.add_argument(
            "--only", choices=[str(each) for each in JarSet], help="only one set of jars"
        )
        command(verb, run)
    for verb in (listing, verify):
        add_json(verb)
    archive = add_verb(
        verbs, "archive", "write an archive of Spark's classes, so that Spark starts sooner"
    )
    command(archive, _archive)


def _chosen(session: Session) -> JarSet | None:
    return JarSet(session.arguments.only) if session.arguments.only else None


def _fetch(session: Session) -> None:
    from penstock.cli.screen.fetchbar import fetch_and_show

    chosen = _chosen(session)
    wanted = missing_jars(chosen, verify=True)
    terminal = session.terminal
    if not wanted:
        count = len(locked_jars(chosen))
        terminal.note(f"all {count} jars are in {jars_dir()}")
        return
    fetch_and_show(terminal, wanted, mirror=session.arguments.mirror)


def _list(session: Session) -> None:
    missing = set(missing_jars(_chosen(session)))
    rows = [
        {
            "set": str(jar.jar_set),
            "jar": jar.coordinates,
            "bytes": jar.size,
            "present": jar not in missing,
        }
        for jar in locked_jars(_chosen(session))
    ]
    if session.arguments.json:
        session.terminal.json({"directory": str(jars_dir()), "jars": rows})
        return
    session.terminal.table(("set", "jar", "bytes", "present"), [tuple(r.values()) for r in rows])


def _verify(session: Session) -> None:
    jars = locked_jars(_chosen(session))
    wrong = missing_jars(_chosen(session), verify=True)
    if session.arguments.json:
        names = [jar.coordinates for jar in wrong]
        session.terminal.json({"ok": not wrong, "jars": len(jars), "wrong": names})
    if wrong:
        raise ConfigurationError(
            f"{len(wrong)} of {len(jars)} jars are missing or do not match their checksum",
            code="jars.wrong",
            detail="\n  ".join(jar.coordinates for jar in wrong),
            hint="penstock jars fetch",
        )
    if not session.arguments.json:
        total = sum(jar.size for jar in jars) >> 20
        session.terminal.line(f"ok: {len(jars)} jars, {total} MiB, every byte verified")


def _archive(session: Session) -> None:
    require_spark()
    from penstock.pipelines.spark.training import write_archive

    jar_paths(JarSet.SPARK)  # complains where some are missing
    terminal = session.terminal
    terminal.note("running a stream, and writing the classes it loads into an archive")
    if write_archive():
        terminal.note(f"Spark starts sooner now; the archive is in {archives_dir()}")
    else:
        terminal.note(f"nothing to do: {archives_dir()} has it, or another process writes it")
