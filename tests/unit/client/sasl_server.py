"""The side of a login that a broker has."""

from __future__ import annotations

import base64
import hashlib
import hmac


class Server:
    """The broker's side of SCRAM, written from RFC 5802 and sharing nothing with ours."""

    def __init__(self, hash_name: str, password: str) -> None:
        self.hash_name = hash_name
        self.salt = b"some salt"
        self.salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), self.salt, 4096)

    def mac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self.hash_name).digest()

    def first(self, client_first: bytes) -> bytes:
        self.client_first = client_first.split(b",", 2)[2]
        nonce = self.client_first.split(b"r=")[1]
        self.server_first = b"r=" + nonce + b"more,s=" + base64.b64encode(self.salt) + b",i=4096"
        return self.server_first

    def final(self, client_final: bytes) -> bytes | None:
        """The server's signature, or None if the proof is wrong."""
        without_proof, _, proof = client_final.partition(b",p=")
        auth = b",".join((self.client_first, self.server_first, without_proof))
        client_key = self.mac(self.salted, b"Client Key")
        stored_key = hashlib.new(self.hash_name, client_key).digest()
        signature = self.mac(stored_key, auth)
        wanted = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if base64.b64decode(proof) != wanted:
            return None
        return b"v=" + base64.b64encode(self.mac(self.mac(self.salted, b"Server Key"), auth))
