"""A member of a share group with librdkafka, as a program that can be killed: it accepts all, and prints what it did.

python -m tests.interop.share.librdkafka_member BOOTSTRAP GROUP TOPIC
"""

import sys

from confluent_kafka import ShareConsumer

TIMEOUT_S = 60.0


def main(bootstrap_servers: str, group: str, topic: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    while True:
        messages = list(consumer.poll(0.2))
        for message in messages:
            assert message.error() is None, message.error()
            text = f"{message.partition()} {message.offset()} {message.delivery_count()} {message.value().decode()}"
            say("record", text)
            consumer.acknowledge(message)
        if messages and not any(consumer.commit_sync(TIMEOUT_S).values()):
            say("accepted", *(f"{message.partition()} {message.offset()}" for message in messages))


def say(*words: str) -> None:
    sys.stdout.write("\t".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
