"""Certificates for tests."""

from pathlib import Path

from ottla.testing.certificates import CertificateAuthority


def test_names_with_dots_have_files_of_their_own(tmp_path: Path):
    authority = CertificateAuthority(tmp_path)
    issued = [authority.issue(name) for name in ("ann@example.org", "ann@example.com")]
    assert len({path for one in issued for path in one}) == 6
    assert issued[0].certificate.read_bytes() != issued[1].certificate.read_bytes()
