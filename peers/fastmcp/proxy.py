"""FastMCP as a proxy, for the benchmark: `proxy.py PORT URL`."""

import sys
import warnings

import uvicorn
from fastmcp.server import create_proxy

warnings.simplefilter("ignore")

port, url = sys.argv[1:]
proxy = create_proxy(url, name="bench")
# Responses are JSON and need no session, as its documentation advises for speed.
app = proxy.http_app(json_response=True, stateless_http=True)
# Connections stay idle during other measurements; the default closes them after five seconds.
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error", access_log=False, timeout_keep_alive=600)
