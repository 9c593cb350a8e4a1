"""An ingest front for any table: it takes requests from many clients and commits them one by one or in groups.

    front = Front(table.door(), schema, Staged(), token="...")      in the writing process
    port = await front.start()
    ...
    await front.drain()                                             commit and answer all accepted requests

    with FrontClient(("127.0.0.1", port), "...", schema) as client: in any other process
        answer = client.send(batch)
        if answer.outcome is Outcome.ACKED: ...                     committed, in the commit answer.commit

`policies` defines when the front commits, `wire` the protocol, and `front` the guarantees: a request is acknowledged
after its commit has returned, and memory is bounded for any number of clients. `serve` runs a front as a program.
"""
