"""Answers SQL with DuckDB, line by line: a JSON text comes in, a JSON object goes out.

The time of an answer is that of the statement and of fetching its rows. The start of Python, of the module and of the
connection is not in it.
"""

import json
import sys
import time
from datetime import datetime, timezone

import duckdb


def text(value):
    """A value as hypseq prints it in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def answer(connection, sql):
    began = time.perf_counter()
    rows = connection.execute(sql).fetchall()
    ms = (time.perf_counter() - began) * 1000
    return {"ms": ms, "rows": [[text(value) for value in row] for row in rows]}


def main():
    connection = duckdb.connect(config={"threads": int(sys.argv[1])})
    connection.execute("SET TimeZone = 'UTC'")
    # Footers are kept within a session, as hypseq's engine keeps them.
    connection.execute("SET parquet_metadata_cache = true")
    # The bar would be drawn on stdout, among the replies.
    connection.execute("SET enable_progress_bar = false")
    for line in sys.stdin:
        try:
            reply = answer(connection, json.loads(line))
        except duckdb.Error as error:
            reply = {"error": str(error)}
        print(json.dumps(reply), flush=True)


main()
