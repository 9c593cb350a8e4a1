"""A small writer in front of any table: requests of many clients, committed one by one or several at once.

    front = Front(table.door(), schema, Staged(), token="...")      in the process that is to write
    port = await front.start()
    ...
    await front.drain()                                             all that was taken in is committed and answered

    with FrontClient(("127.0.0.1", port), "...", schema) as client: anywhere else
        answer = client.send(batch)
        if answer.outcome is Outcome.ACKED: ...                     committed, in the commit answer.commit

`policies` says when it commits, `wire` what goes over a connection, `front` what it promises: a request is
acknowledged once the commit that holds it has returned, and memory is bounded however many ask. `serve` is a program.
"""
