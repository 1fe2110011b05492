"""The official Python client with a protected server: `client.py VERSION URL STEP…`.

Works as `login-client`: a step is a tool or a number of seconds to wait; one line of JSON per tool.
"""

import json
import sys
import threading
import warnings
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

warnings.simplefilter("ignore")
VERSION, URL, *STEPS = sys.argv[1:]


class Callback(BaseHTTPRequestHandler):
    """The redirect URI of the login."""

    came = threading.Event()
    query = {}

    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlparse(self.path).query).items()}
        self.send_response(200 if "state" in query else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Done</title>You may close this page.")
        if "state" in query:
            Callback.query = query
            Callback.came.set()

    def log_message(self, *_):
        pass


class Kept:
    """The storage of an application."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def opened(page):
    Callback.came.clear()
    await anyio.to_thread.run_sync(webbrowser.open, page)


async def came_back():
    await anyio.to_thread.run_sync(Callback.came.wait)
    query = Callback.query
    if "error" in query:
        raise RuntimeError(query["error"])
    return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))


def reason(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main():
    listener = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    redirect = f"http://127.0.0.1:{listener.server_port}/callback"
    metadata = OAuthClientMetadata(
        client_name="The Python client",
        redirect_uris=[redirect],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(URL, metadata, Kept(), opened, came_back)
    tool = STEPS[0]
    try:
        async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
            async with Client(streamable_http_client(URL, http_client=http), mode=MODE) as client:
                for tool in STEPS:
                    if tool.isdigit():
                        await anyio.sleep(int(tool))
                        continue
                    result = await client.call_tool(tool, {})
                    text = "\n".join(getattr(block, "text", "") for block in result.content)
                    print(json.dumps({"tool": tool, "text": text}), flush=True)
    except Exception as error:
        print(json.dumps({"tool": tool, "error": reason(error)}), flush=True)


MODE = VERSION if VERSION == "2026-07-28" else "legacy"
anyio.run(main)
