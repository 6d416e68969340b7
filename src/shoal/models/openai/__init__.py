"""Talks to OpenAI-compatible servers: requests, replies, errors, endpoints."""

from shoal.models.openai.client import ModelClient
from shoal.models.openai.embeddings import Embedder, EmbeddingRequest, StackEmbedder, is_embedding, pack
from shoal.models.openai.endpoints import Endpoint, resolve_endpoint
from shoal.models.openai.probe import ProbeResult, probe
