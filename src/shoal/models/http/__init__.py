"""A small HTTP/1.1 client: connections, pools, routes."""
