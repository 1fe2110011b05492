"""Registers the measured server at ContextForge: `register.py PORT URL`. Prints `PATH TOOL`.

Fails while ContextForge is still starting; the benchmark then runs it again.
"""

import json
import sys
import urllib.request

port, url = sys.argv[1:]
base = f"http://127.0.0.1:{port}"


def request(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    asked = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(asked, timeout=30) as response:
        return json.load(response)


gateways = request("GET", "/gateways")
gateways = gateways if isinstance(gateways, list) else gateways.get("gateways", gateways.get("items", []))
if not any(gateway["name"] == "bench" for gateway in gateways):
    request("POST", "/gateways", {"name": "bench", "url": url, "transport": "STREAMABLEHTTP"})
tools = request("GET", "/tools")
tools = tools if isinstance(tools, list) else tools.get("tools", tools.get("items", []))
tool = next(tool for tool in tools if tool["name"].endswith("echo"))
server = {"server": {"name": "bench", "associated_tools": [tool["id"]]}}
servers = request("GET", "/servers")
servers = servers if isinstance(servers, list) else servers.get("servers", servers.get("items", []))
known = next((server for server in servers if server["name"] == "bench"), None) or request("POST", "/servers", server)
print(f"/servers/{known['id']}/mcp/ {tool['name']}")
