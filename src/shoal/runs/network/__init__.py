"""The network of people: who is connected to whom, who moved whom, how claims spread, and where each is drawn."""

from shoal.runs.network.history import NetworkHistory
from shoal.runs.network.person import NetworkPerson, explain_person
from shoal.runs.network.picture import NetworkPicture, PictureRequest, draw_network
