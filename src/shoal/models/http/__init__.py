"""A small HTTP/1.1 client: connections, pools, routes."""

from shoal.models.http.pool import open_transport, raise_file_limit
from shoal.models.http.routes import Proxies
