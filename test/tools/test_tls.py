"""evlock over TLS: each option of it is needed, and does what it says."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile

import command
from command import run

NAME = "locks.test"


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_certificates(folder):
    """An authority, and two certificates of it: the server's, and a client's."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority")
    for who in "server", "client":
        openssl(folder, "req", "-x509", *key, "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", f"{who}.key", "-out",
                f"{who}.crt", "-subj", f"/CN={who}", "-addext", f"subjectAltName=DNS:{NAME}",
                "-addext", "basicConstraints=critical,CA:FALSE")


def start_server(folder):
    """A server on a port of its own, which another process might take first."""
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = os.path.join(folder, "log")
        options = ["--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                   "--tls-cert-file", "server.crt", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.crt",
                   "--logfile", log]
        server = subprocess.Popen([os.environ.get("EVLOCK_TEST_SERVER", "redis-server"), *options], cwd=folder)
        said = lambda: open(log, encoding="utf-8").read() if os.path.exists(log) else ""
        command.wait_for(lambda: server.poll() is not None or "eady to accept connections" in said(), "the server")
        if server.poll() is None:
            return server, port
    raise AssertionError("no port was to be had")


def test_needs_each_option(context):
    with tempfile.TemporaryDirectory(prefix="evlock-") as folder:
        make_certificates(folder)
        server, port = start_server(folder)
        wanted = {"cacert": f"{folder}/ca.crt", "cert": f"{folder}/client.crt", "key": f"{folder}/client.key",
                  "sni": NAME}

        def tries(*without):
            given = [word for name, value in wanted.items() if name not in without for word in ("--" + name, value)]
            return run(context, "run", "-u", f"rediss://127.0.0.1:{port}", *given, "a", "echo", "ran")

        try:
            assert tries().stdout == "ran\n", tries()
            for without in ["cacert"], ["sni"], ["cert", "key"], ["cert"], ["key"]:
                result = tries(*without)
                words = "belong together" if without in (["cert"], ["key"]) else "certificate"
                assert result.returncode == 125 and words in result.stderr, (without, result)
            assert "give its authority by --cacert" in tries("cacert").stderr, tries("cacert")
            assert "give the name that it has by --sni" in tries("sni").stderr, tries("sni")
        finally:
            server.kill()
            server.wait()


def speaks_tls():
    program = os.environ.get("EVLOCK_TEST_SERVER", "redis-server")
    words = [program, "--port", "0", "--tls-port", "1", "--tls-cert-file", "/nowhere"]
    said = subprocess.run(words, capture_output=True, text=True, check=False) if shutil.which(program) else None
    return said and "wrong number of arguments" not in said.stdout + said.stderr and "Bad directive" not in said.stderr


if __name__ == "__main__":
    if not shutil.which("openssl") or not speaks_tls():
        print("skipped: there is no openssl, or the server speaks no TLS")
        sys.exit(77)
    command.main(globals())
