"""What the pages show of a run: each answer reads only the part of the run that is shown."""

from shoal.runs.views.biography import AgentBiography, AgentWorld, read_biography
from shoal.runs.views.cards import CardReader, ClaimCard, RunCard, RunHeader, describe_unreadable, read_header
from shoal.runs.views.conversations import ConversationCard, Speaker, list_conversations, read_conversation
from shoal.runs.views.feed import (
    CommentCard,
    FeedFilter,
    PostCard,
    Sort,
    TrendCount,
    read_feed,
    read_thread,
    read_trends,
)
from shoal.runs.views.figures import MAX_POINTS, RunFigures, read_run_figures
from shoal.runs.views.marks import TimelineMark
from shoal.runs.views.pages import ViewPage
from shoal.runs.views.people import PeopleFilter, PeopleOrder, PeopleReader, PersonCard
from shoal.runs.views.talk import TalkTurn, read_talk
from shoal.runs.views.turns import AgentMemory, TurnView, read_many_turns, read_memory, read_turns
from shoal.runs.views.whole import read_whole_feed, read_whole_people, read_whole_talk
