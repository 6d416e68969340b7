"""The questions that a summary asks of a world's database."""

HAS_ROUNDS = "SELECT 1 FROM sqlite_master WHERE name = 'shoal_round'"
HAS_POSTS = "SELECT 1 FROM sqlite_master WHERE name = 'post'"
LAST_ROUND = "SELECT max(round) FROM shoal_round"
ROUNDS = "SELECT round, digest, actions FROM shoal_round ORDER BY round"

KINDS = "SELECT action, count(*) FROM trace WHERE action != 'sign_up' GROUP BY 1 ORDER BY 2 DESC, 1"
ACTIVE = """
SELECT user_id, name, actions FROM
    (SELECT user_id, count(*) AS actions FROM trace WHERE action NOT IN ('sign_up', 'do_nothing', 'refresh', 'done')
     GROUP BY user_id ORDER BY actions DESC, user_id LIMIT ?)
JOIN user USING (user_id) ORDER BY actions DESC, user_id
"""
#: A post that only passes on another one has no reactions of its own.
TOP_POSTS = """
SELECT post_id, name, coalesce(quote_content, content), num_likes, num_dislikes, num_shares,
    (SELECT count(*) FROM comment WHERE comment.post_id = post.post_id) AS comments, post.created_at
FROM post JOIN user USING (user_id) WHERE original_post_id IS NULL OR quote_content IS NOT NULL
ORDER BY num_likes + num_shares + comments DESC, post_id LIMIT ?
"""

#: Posts that speak of the topic or pass it on. `on_topic` is a function that the summary defines.
MAKE_ABOUT = """
CREATE TEMP TABLE about AS SELECT post_id, user_id, created_at FROM post
WHERE on_topic(content) OR on_topic(quote_content) ORDER BY post_id
"""
ABOUT_BY_DATE = "SELECT created_at, count(*) FROM about GROUP BY 1"
FIRST_PART_TAKEN = """
SELECT first, count(*) FROM (SELECT user_id, min(created_at) AS first FROM (
    SELECT user_id, created_at FROM about
    UNION ALL SELECT user_id, created_at FROM "like" WHERE post_id IN (SELECT post_id FROM about)
    UNION ALL SELECT user_id, created_at FROM comment WHERE post_id IN (SELECT post_id FROM about)
) GROUP BY user_id) GROUP BY first
"""

MAKE_CAMP = "CREATE TEMP TABLE camp (user_id INTEGER PRIMARY KEY, name TEXT)"
ADD_TO_CAMP = "INSERT INTO camp VALUES (?, ?)"
POSTS_BY_CAMP = "SELECT name, count(*) FROM about JOIN camp USING (user_id) GROUP BY name"
LIKES_BY_CAMP = """
SELECT liker.name, count(*), sum(liker.name = author.name) FROM "like"
JOIN about USING (post_id) JOIN camp AS liker ON liker.user_id = "like".user_id
JOIN camp AS author ON author.user_id = about.user_id GROUP BY liker.name
"""

# Rooms

HAS_UTTERANCES = "SELECT 1 FROM sqlite_master WHERE name = 'utterance'"
REMARKS = "SELECT count(*) FROM utterance"
TALKERS = """
SELECT user_id, name, count(*) AS remarks, avg(num_hearers) FROM utterance JOIN user USING (user_id)
GROUP BY user_id ORDER BY remarks DESC, user_id LIMIT ?
"""
ADDRESSES = """
SELECT speaker.name, target.name, count(*) AS remarks FROM utterance
JOIN user AS speaker ON speaker.user_id = utterance.user_id JOIN user AS target ON target.user_id = target_id
GROUP BY utterance.user_id, target_id ORDER BY remarks DESC, utterance.user_id, target_id LIMIT ?
"""
#: Relations of round 0 were declared, not formed.
RELATIONS = "SELECT count(*) FROM relation WHERE created_at > 0"
BONDS = """
SELECT one.name, other.name, relation, relation.created_at FROM relation
JOIN user AS one ON one.user_id = relation.user_id JOIN user AS other ON other.user_id = other_id
WHERE relation.created_at > 0 ORDER BY relation.rowid DESC LIMIT ?
"""
ATTENTION = """
SELECT content, count(*) AS people FROM
    (SELECT user_id, max(rowid), json_extract(info, '$.content') AS content FROM trace WHERE action = 'attend'
     GROUP BY user_id)
GROUP BY content ORDER BY people DESC, content LIMIT ?
"""
LAST_REMARKS = """
SELECT utterance.created_at, speaker.name, target.name, content FROM utterance
JOIN user AS speaker ON speaker.user_id = utterance.user_id LEFT JOIN user AS target ON target.user_id = target_id
ORDER BY utterance.rowid DESC LIMIT ?
"""

# Conversations of two

HAS_PAIRS = "SELECT 1 FROM sqlite_master WHERE name = 'pair'"
PAIRS = "SELECT count(*) FROM pair"
FINISHED = """
SELECT count(*) FROM (SELECT pair_id FROM scene GROUP BY pair_id HAVING count(ended_round) >= ?)
"""
ENDINGS = """
SELECT ended_by, count(*) FROM scene WHERE ended_round IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1
"""
MEAN_SCENE = "SELECT avg(turns), avg(agreement) FROM scene WHERE ended_round IS NOT NULL"
MEAN_SCORE = "SELECT avg(score) FROM score"
#: Best first; of conversations rated alike the one that comes first.
RATED_PAIRS = """
SELECT pair_id, one.name, other.name, avg(score) AS mean,
    (SELECT agreement FROM scene WHERE scene.pair_id = pair.pair_id AND agreement IS NOT NULL
     ORDER BY scene DESC LIMIT 1)
FROM score JOIN pair USING (pair_id) JOIN user AS one ON one.user_id = first_id
JOIN user AS other ON other.user_id = second_id
WHERE score IS NOT NULL GROUP BY pair_id ORDER BY mean DESC, pair_id
"""
LAST_LINES = """
SELECT line.round, name, NULL, content FROM line JOIN user ON user.agent_id = line.agent_id
WHERE pair_id = ? ORDER BY line_id DESC LIMIT ?
"""
