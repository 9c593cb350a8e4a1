"""An ingest gateway for any table: it takes requests from many clients and commits them one by one or in groups.

    gateway = Gateway(table.client_factory(), schema, GroupCommit(), token="...")      in the writing process
    port = await gateway.start()
    ...
    await gateway.drain()                                             commit and answer all accepted requests

    with GatewayClient(("127.0.0.1", port), "...", schema) as client: in any other process
        answer = client.send(batch)
        if answer.outcome is Outcome.ACKED: ...                       committed, in the commit answer.commit

`group_commit` defines when the gateway commits, `protocol` the messages and the clients, and `server` the guarantees: a
request is acknowledged after its commit has returned, and memory is bounded for any number of clients. `server` is also
a program. The study's texts call a gateway a front.
"""
