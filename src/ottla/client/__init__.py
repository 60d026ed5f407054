"""A small asyncio client for any Kafka cluster.

    from ottla.client import Client, Producer, fetch, topics

    async with Client("localhost:9092") as client:
        await topics.create(client, topics.NewTopic("orders", partitions=3))
        await Producer(client).send("orders", b"tea", key=b"alice")
        async for record in fetch(client, {("orders", 0): EARLIEST}, until=LATEST):
            ...
        answer = await client.send(DescribeClusterRequest())    # every API, by its message

What is not named here lies in the modules: `topics`, `configs`, `cluster`, `groups`, `offsets`, `errors`, `sasl`.
"""
