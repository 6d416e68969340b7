"""The network of a world: its ties, opinions, influence, the paths of claims, and a layout."""

from shoal.runs.network.history import NetworkHistory
from shoal.runs.network.layout import place_nodes
from shoal.runs.network.person import NetworkPerson, explain_person
from shoal.runs.network.picture import NetworkPicture, PictureRequest, draw_network
