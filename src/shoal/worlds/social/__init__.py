"""The social platforms: what people see of one another, and what their actions do."""

from shoal.worlds.social.database import IS_TIE_CHANGE, Talk, TopPost, TurnNumbers, find_round
from shoal.worlds.social.observations import PostView, SocialObservation
from shoal.worlds.social.settings import SocialSettings
