"""Each program holds against the original: what it expects of a broker is what Apache Kafka does."""

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.programs import pairs, run_program


@pytest.mark.parametrize(("name", "release"), pairs())
def test_program_is_content_with_apache_kafka(name: str, release: str, apache_kafka: ApacheKafka):
    run_program(name, release, apache_kafka.bootstrap_servers)
