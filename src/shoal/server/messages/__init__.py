"""Both ends of the wire: what clients send and what the server answers, in a module for each group of routes.

The OpenAPI document is made of these, and of what readers in `runs/views` return.
"""
