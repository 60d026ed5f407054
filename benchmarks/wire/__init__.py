"""The codec beside kio, kafka-python and aiokafka."""
