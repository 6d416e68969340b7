"""People in a room: they talk, think, reach out, turn to things, form relationships."""

from shoal.worlds.room.observations import RoomObservation, Stimulus
from shoal.worlds.room.summary import RoomTalk
