"""Talks to OpenAI-compatible servers: requests, replies, errors, endpoints."""

from shoal.models.openai.client import Client
from shoal.models.openai.embeddings import Embedder, EmbeddingRequest, StackEmbedder, is_embedding, pack
from shoal.models.openai.endpoints import Endpoint, resolve_endpoint
from shoal.models.openai.probe import ProbeResult, probe

__all__ = [
    # client
    "Client",
    # embeddings
    "Embedder",
    "EmbeddingRequest",
    "StackEmbedder",
    "is_embedding",
    "pack",
    # endpoints
    "Endpoint",
    "resolve_endpoint",
    # probe
    "ProbeResult",
    "probe",
]
