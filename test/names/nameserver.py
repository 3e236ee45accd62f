"""A nameserver of the test's own, in threads: what names mean is a table, and it answers by UDP and by TCP."""

import ipaddress
import socket
import struct
import threading

A, AAAA = 1, 28
NO_SUCH_NAME, TRUNCATED = 3, 0x0200
MOST_BY_UDP = 512


class Nameserver:
    def __init__(self, address):
        self.names = {}  # of a name, in lower case: its addresses
        self.lower_case_alone = False  # a name with a capital is none
        self.silent = False
        self.asked = 0
        self.by_tcp = 0
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind((address, 53))
        self.listener = socket.socket()
        self.listener.bind((address, 53))
        self.listener.listen()
        for body in (self.serve_datagrams, self.serve_connections):
            threading.Thread(target=body, daemon=True).start()

    def answer(self, message, most):
        """What is answered to a question; None: nothing."""
        end, labels = 12, []
        while message[end]:
            labels.append(message[end + 1 : end + 1 + message[end]].decode())
            end += 1 + message[end]
        name, question = ".".join(labels), message[12 : end + 5]
        kind = struct.unpack(">H", message[end + 1 : end + 3])[0]
        self.asked += 1
        if self.silent:
            return None
        known = self.names.get(name if self.lower_case_alone else name.lower())
        records = b""
        wanted = {A: 4, AAAA: 6}.get(kind)
        addresses = [ipaddress.ip_address(text) for text in known or ()]
        addresses = [address for address in addresses if address.version == wanted]
        for address in addresses:
            records += struct.pack(">HHHIH", 0xC00C, kind, 1, 1, len(address.packed)) + address.packed
        flags, count = 0x8180 | (NO_SUCH_NAME if known is None else 0), len(addresses)
        if len(question) + len(records) + 12 > most:
            flags, count, records = flags | TRUNCATED, 0, b""
        return message[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question + records

    def serve_datagrams(self):
        while True:
            message, sender = self.datagrams.recvfrom(2000)
            answer = self.answer(message, MOST_BY_UDP)
            if answer:
                self.datagrams.sendto(answer, sender)

    def serve_connections(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve_connection, args=[connection], daemon=True).start()

    def serve_connection(self, connection):
        with connection, connection.makefile("rb") as incoming:
            while len(head := incoming.read(2)) == 2:
                answer = self.answer(incoming.read(struct.unpack(">H", head)[0]), 65535)
                if answer:
                    self.by_tcp += 1
                    connection.sendall(struct.pack(">H", len(answer)) + answer)
