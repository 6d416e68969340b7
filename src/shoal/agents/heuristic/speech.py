"""How the heuristic minds' people talk, where the others write. Built like the texts in `voice`, and as readable back.

`{about}` and `{name}` are as in `phrases`, and so is the rule that only phrases under a leaning contain cues.
"""

from __future__ import annotations

from shoal.agents.heuristic import phrases
from shoal.agents.heuristic.phrases import Phrases
from shoal.agents.heuristic.writing import Family, Voice

OPENERS: Phrases = (
    "If I may.",
    "Let me say something.",
    "Can I come in here?",
    "One thing from my side.",
    "I have been listening for a while.",
    "Let me put it this way.",
    "Here is how I see it.",
    "Since we are all here.",
    "Let me start somewhere.",
    "To add to that.",
    "Before we move on.",
    "I will be brief.",
    "Speaking for myself.",
    "Let me think aloud.",
    "I want to come back to something.",
    "You know what I keep thinking?",
    "Let us talk about it.",
    "May I?",
    "Right, my turn.",
    "Let me tell you where I stand.",
)
NEWS_OPENERS: Phrases = (
    "Did you hear that?",
    "So that is out now.",
    "Well, there we have it.",
    "That changes the evening.",
    "You all heard it.",
    "Let us talk about what we just heard.",
    "That came sooner than I thought.",
    "About what was just said.",
    "I had to hear that twice.",
    "So that is the news.",
)
AGREEING: Phrases = (
    "Exactly{name}.",
    "Same here{name}.",
    "You took the words out of my mouth{name}.",
    "That is how I see it too{name}.",
    "I was about to say the same{name}.",
    "That is it{name}.",
    "I am with you{name}.",
    "Spot on{name}.",
    "That makes two of us{name}.",
    "Well put{name}.",
    "I see it the same way{name}.",
    "Go on{name}.",
)
DISAGREEING: Phrases = (
    "I see it differently{name}.",
    "Hold on{name}.",
    "Wait a minute{name}.",
    "Let me push back a little{name}.",
    "Here we part ways{name}.",
    "Hang on{name}.",
    "Really{name}?",
    "I have to step in here{name}.",
    "Slow down{name}.",
    "You lost me there{name}.",
    "Let us look at that once more{name}.",
    "I come out on the other side of this{name}.",
)
OPEN: Phrases = (
    "Interesting{name}.",
    "Oh{name}.",
    "Ah{name}.",
    "Tell me more{name}.",
    "You got me thinking{name}.",
    "Now I am curious{name}.",
    "Huh{name}.",
    "I heard you{name}.",
    "So that is your take{name}.",
    "Let me think about that{name}.",
    "I had another picture of it{name}.",
    "Say that again{name}.",
)

OPEN_MIDDLES: Phrases = (
    "I am still making up my mind about {about}.",
    "Has anyone here looked into {about} in detail?",
    "There are two sides to {about}, and I see both.",
    "I want to hear more about {about} before I pick a side.",
    "What do you make of {about}?",
    "Can somebody explain {about} to me in simple words?",
    "I am waiting for more details on {about}.",
    "Where did the talk about {about} begin?",
    "People at work brought up {about} twice today.",
    "Who here has first-hand experience with {about}?",
    "I sit on the fence when it comes to {about}.",
    "I heard about {about} from three people in one day.",
    "I know little about {about} so far.",
    "What happens next with {about}?",
    "I would like to see numbers on {about}.",
    "How did we get to {about}?",
)
#: What follows a mild opinion.
MILD_REASONS: Phrases = (
    "I looked at where it comes from before saying this.",
    "People I have known for years told me the same.",
    "It fits with what I have seen over the years.",
    "I asked around before coming here.",
    "It is the little details that did it for me.",
    "My family sees it the same way.",
    "You only have to look at the numbers.",
    "I slept on it for two nights.",
    "I have followed it from the start.",
    "It came up at dinner and stayed with me.",
    "It matters more than many people think.",
    "I went through it line by line.",
    "My neighbours say the same.",
    "I took my time with this one.",
)
OPEN_REASONS: Phrases = (
    "I am listening.",
    "My sister and my boss see it in opposite ways.",
    "I am somewhere in the middle.",
    "Different people tell it in different ways.",
    "Maybe I missed the beginning.",
    "It might take a while until the dust settles.",
    "I only caught the end of the discussion.",
    "I made a list of what speaks for each side.",
    "Just asking.",
    "I have an open mind.",
    "I will sleep on it.",
    "It is early days.",
    "Somebody here must know.",
    "Take your time.",
)

CHAT_MIDDLES: Phrases = (
    "I spent the whole evening on {about}.",
    "There is so much going on in {about} at the moment.",
    "I picked up something new about {about} today.",
    "My weekend was all about {about}.",
    "I was up late with {about} again.",
    "I found an old book on {about}.",
    "What got you into {about}?",
    "I am planning something around {about} for next month.",
    "Somebody showed me a whole other side of {about}.",
    "Ten years ago I knew little about {about}.",
    "I met a stranger today and we talked about {about} for an hour.",
    "Most of what I know about {about} I learned by asking.",
    "I tried to explain {about} to my parents.",
    "I had a long chat about {about} with a friend.",
    "Does anybody here share my interest in {about}?",
    "I started a small notebook on {about}.",
)

THOUGHT_OPENERS: Phrases = (
    "I keep that to myself for now.",
    "Let them talk.",
    "I should listen a little longer.",
    "What would I say if they asked me?",
    "I wonder who else sees it my way.",
    "I want to be sure before I speak.",
    "It is getting late.",
    "There is more behind this.",
    "Maybe I speak up in a minute.",
    "I have heard this before somewhere.",
    "Let me go through it once more.",
    "Somebody will ask me sooner or later.",
)

RELATION_WORDS: Phrases = ("of one mind", "allies", "friends")


class Speech(Voice):
    """Talks in the name of agents. `nth` is the number of things the agent said or thought before this one."""

    def __init__(self, seed: int, world: str) -> None:
        super().__init__(seed, world)
        self._remarks = {lean: _said(OPENERS, lean) for lean in phrases.LEANINGS}
        self._told = {lean: _said(NEWS_OPENERS, lean) for lean in phrases.LEANINGS}
        self._answers = {
            (tone, lean): Family(openers, _reply_middles(lean), _reasons(lean))
            for tone, openers in ((1, AGREEING), (0, OPEN), (-1, DISAGREEING))
            for lean in phrases.LEANINGS
        }
        self._chat = Family(OPENERS, CHAT_MIDDLES, phrases.HOBBY_REASONS)
        self._chimes = Family(OPEN, CHAT_MIDDLES, phrases.HOBBY_REASONS)
        self._thoughts = {lean: _said(THOUGHT_OPENERS, lean) for lean in phrases.LEANINGS}

    def remark(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._remarks[lean], agent, nth).replace("{about}", about)

    def reaction(self, agent: int, nth: int, lean: int, about: str) -> str:
        """To what everybody was told."""
        return self._write(self._told[lean], agent, nth).replace("{about}", about)

    def answer(self, agent: int, nth: int, tone: int, lean: int, name: str, about: str) -> str:
        """`tone` is 1 to agree with the speaker, -1 to disagree, 0 for neither."""
        text = self._write(self._answers[tone, lean], agent, nth)
        return text.replace("{name}", name).replace("{about}", about)

    def chat(self, agent: int, nth: int, about: str) -> str:
        return self._write(self._chat, agent, nth).replace("{about}", about)

    def chime(self, agent: int, nth: int, name: str, about: str) -> str:
        """An answer to somebody who chats."""
        return self._write(self._chimes, agent, nth).replace("{name}", name).replace("{about}", about)

    def thought(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._thoughts[lean], agent, nth).replace("{about}", about)


def _said(openers: Phrases, lean: int) -> Family:
    middles = OPEN_MIDDLES if lean == 0 else phrases.POST_MIDDLES[1 if lean > 0 else -1]
    return Family(openers, middles, _reasons(lean))


def _reply_middles(lean: int) -> Phrases:
    return OPEN_MIDDLES if lean == 0 else phrases.REPLY_MIDDLES[1 if lean > 0 else -1]


def _reasons(lean: int) -> Phrases:
    if lean == 0:
        return OPEN_REASONS
    return phrases.POST_REASONS[lean] if abs(lean) > 1 else MILD_REASONS
