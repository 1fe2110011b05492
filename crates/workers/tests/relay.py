"""Passes standard input and output on to a Unix socket, where a test speaks for the tool worker: `relay.py SOCKET`."""

import os
import socket
import sys
import threading

link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])


def read_input():
    while data := os.read(0, 1 << 16):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)


threading.Thread(target=read_input, daemon=True).start()
while data := link.recv(1 << 16):
    while data:
        data = data[os.write(1, data) :]
os._exit(0)
