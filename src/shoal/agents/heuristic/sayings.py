"""Material for conversations of two in readable English.

As in `phrases`: `{about}` stands for what is talked about, `{name}` for an address such as `, Mira` or for nothing, and
`{quote}` for words of somebody else. Only phrases under a leaning contain words that `words.Reader` takes for cues.
"""

from __future__ import annotations

from shoal.agents.heuristic import phrases
from shoal.agents.heuristic.phrases import Phrases

GREETINGS: Phrases = (
    "Hello{name}.",
    "Hi{name}.",
    "There you are{name}.",
    "Hey{name}, come and sit down.",
    "Ah{name}, we meet at last.",
    "Hello{name}, I have a little time.",
    "Hi{name}, let us talk.",
    "Morning or evening{name}, it is about time we talked.",
)

SETTINGS: Phrases = (
    "So here we are: “{quote}”.",
    "“{quote}”, they told me, so here I am.",
    "What a moment for a talk: “{quote}”.",
    "I keep looking around: “{quote}”.",
    "“{quote}”, and the two of us in the middle of it.",
    "It says a lot about us that we meet like this: “{quote}”.",
)

TURNING_POINTS: Phrases = (
    "Wait, did you see that? “{quote}”.",
    "Now this changes things: “{quote}”.",
    "“{quote}”. Give me a second.",
    "I did hear that: “{quote}”.",
    "And now this: “{quote}”.",
    "“{quote}”. Let us see what we make of it.",
)

NEWS: Phrases = (
    "I just heard: “{quote}”.",
    "Did they tell you as well? “{quote}”.",
    "There is news: “{quote}”.",
    "Somebody passed me a note: “{quote}”.",
)

#: By tone: 1 to agree with the other, -1 to disagree, 0 for neither.
OPENERS: dict[int, Phrases] = {
    1: (
        "You took the words out of my mouth{name}.",
        "Same here{name}.",
        "That makes two of us{name}.",
        "I see it the same way{name}.",
        "Exactly{name}.",
        "I was about to say that{name}.",
        "Well put{name}.",
        "We are closer than I thought{name}.",
        "Right there with you{name}.",
        "Spot on{name}.",
    ),
    0: (
        "I hear you{name}.",
        "Let me think{name}.",
        "Go on{name}.",
        "So that is where you stand{name}.",
        "Now I am curious{name}.",
        "You got me thinking{name}.",
        "Hm{name}.",
        "Interesting{name}.",
        "I had to let that sink in{name}.",
        "That is one side of it{name}.",
    ),
    -1: (
        "I see it differently{name}.",
        "Hold on{name}.",
        "Let me push back a little{name}.",
        "Here we part ways{name}.",
        "I come out on the other side of this{name}.",
        "You lost me there{name}.",
        "Wait a minute{name}.",
        "Really{name}?",
        "Slow down{name}.",
        "Let us look at that once more{name}.",
    ),
}

ANSWERS: Phrases = (
    "You ask, so here is my answer.",
    "Since you ask{name}.",
    "I will tell you{name}.",
    "That is a question I can answer{name}.",
    "Let me answer that{name}.",
    "I have been waiting for that question{name}.",
)

RETURNS: Phrases = (
    "But back to what we came for.",
    "Let us get back to it{name}.",
    "To come back to our subject.",
    "We were talking about something else{name}.",
    "One thing at a time{name}, back to it.",
)

#: What somebody says about the topic, by which way it leans.
POINTS: dict[int, Phrases] = {
    1: phrases.REPLY_MIDDLES[1],
    0: (
        "I am still making up my mind about {about}.",
        "I could go either way on {about}.",
        "There is more to say on {about}.",
        "I am of two minds about {about}.",
        "I know little about {about} so far.",
        "I would like to hear more about {about}.",
        "I keep going back and forth on {about}.",
        "I have an open mind about {about}.",
        "Half of my family is on one side about {about}, half on the other.",
        "I wonder what others make of {about}.",
        "I would like to see numbers on {about}.",
        "I went through the arguments about {about} twice.",
    ),
    -1: phrases.REPLY_MIDDLES[-1],
}

CLOSERS: dict[int, Phrases] = {
    **phrases.REPLY_CLOSERS,
    0: (
        "I am listening.",
        "Take your time.",
        "I will sleep on it.",
        "It is early days.",
        "Maybe I missed something.",
        "I have time.",
        "We will see.",
        "I said I would keep an open mind.",
    ),
}

#: What somebody says where there is nothing to have an opinion on.
CHAT: Phrases = (
    "I spent the whole evening on {about}.",
    "There is so much going on in {about} at the moment.",
    "I picked up something new about {about} today.",
    "Most of what I know about {about} I learned by asking.",
    "I found an old book on {about}.",
    "I tried to explain {about} to my parents.",
    "Ten years ago I knew little about {about}.",
    "My weekend was all about {about}.",
    "I had a long chat about {about} with a friend.",
    "I am planning something around {about} for next month.",
    "Somebody showed me a whole other side of {about}.",
    "I keep a notebook on {about}.",
)

QUESTIONS: Phrases = (
    "How do you see {about}?",
    "What would it take for you to see {about} my way?",
    "Where did you hear that about {about}?",
    "Since when do you think so about {about}?",
    "What do the people around you say about {about}?",
    "What would you do about {about}?",
    "Have you always seen {about} like this?",
    "What matters most to you about {about}?",
    "Who told you about {about}?",
    "What comes next with {about}, as you see it?",
)

#: About an interest of one's own.
ASIDES: Phrases = (
    "It reminds me of {about}.",
    "In {about} we would put it another way.",
    "I spend my evenings with {about}, so I see it from there.",
    "My mind keeps going to {about}.",
    "Ask me about {about} and I talk for hours.",
    "You learn a lot about people through {about}.",
    "I was at it with {about} this morning.",
    "Do you know anything about {about}, by the way?",
    "With {about} it is much the same.",
    "There is something of {about} in this.",
)

GOODBYES: Phrases = (
    "I have to go{name}.",
    "Let us leave it there for today{name}.",
    "Time to go{name}.",
    "It is getting late{name}.",
    "I will be on my way{name}.",
    "That is all from me for now{name}.",
)

#: How it ends, by tone.
PARTINGS: dict[int, Phrases] = {
    1: (
        "We see it much the same way.",
        "I think we are done here, we have a deal.",
        "So we are on one page, deal.",
        "Let us tell the others what we found.",
        "You and I are of one mind.",
    ),
    0: (
        "We should talk again.",
        "Let us see what next week brings.",
        "You gave me something to think about.",
        "I will come back to you on that.",
        "To be continued.",
    ),
    -1: (
        "We leave it at that, each on a side.",
        "We see it in two ways, and that is that.",
        "Let us part here before we go in circles.",
        "I stay where I am, and so do you.",
        "Another time, with cooler heads.",
    ),
}

#: Said when somebody walks out.
WALKOUTS: Phrases = (
    "This leads us in circles{name}, I am off.",
    "I have heard it all by now{name}.",
    "Enough for one day{name}.",
    "I will walk out now{name}.",
)

#: Thought and kept to oneself, by tone.
THOUGHTS: dict[int, Phrases] = {
    1: ("We are closer than I expected.", "This is going well.", "I could talk to them for hours."),
    0: ("I wonder what they are really after.", "Let me see where this goes.", "I should ask more questions."),
    -1: ("I do not get through to them.", "They will not move an inch.", "I should have stayed at home."),
}

#: Why a scene got its score, from bad to good.
VERDICTS: tuple[Phrases, ...] = (
    (
        "We talked past one another.",
        "We are as far apart as two people can be.",
        "I did not feel heard.",
        "Nothing moved.",
    ),
    (
        "We heard each other out, but we did not meet.",
        "Some of it made sense, some did not.",
        "It was a start.",
        "We know now where we differ.",
    ),
    (
        "A friendly talk, and we are not far apart.",
        "I learned something.",
        "We found common ground.",
        "I would talk to them again.",
    ),
    (
        "We are of one mind.",
        "It could hardly have gone better.",
        "I felt heard from start to end.",
        "We agree on what matters.",
    ),
)
SILENT_VERDICT = "Hardly a word was said."
