/** Turns of a person, and how actions are told. */

import type { ActionInfo } from "./agent.ts";

/** A round of one world in which the person had a turn. */
export interface Turn {
  world: string;
  round: number;
  time: string;
  actions: ActionInfo[];
}

/** Puts the actions of each turn together, newest turn first as they come. */
export function groupTurns(actions: readonly ActionInfo[]): Turn[] {
  const turns: Turn[] = [];
  for (const action of actions) {
    const last = turns[turns.length - 1];
    if (last && last.round === action.round_num && last.world === action.platform) last.actions.unshift(action);
    else turns.push({ world: action.platform, round: action.round_num, time: action.timestamp, actions: [action] });
  }
  return turns;
}

const VERBS: Record<string, string> = {
  CREATE_POST: "wrote",
  CREATE_COMMENT: "answered",
  QUOTE_POST: "quoted",
  REPOST: "passed on",
  LIKE_POST: "liked",
  UNLIKE_POST: "took back a like of",
  DISLIKE_POST: "disliked",
  UNDO_DISLIKE_POST: "took back a dislike of",
  LIKE_COMMENT: "liked a comment",
  DISLIKE_COMMENT: "disliked a comment",
  REPORT_POST: "reported",
  FOLLOW: "followed",
  UNFOLLOW: "no longer follows",
  MUTE: "muted",
  UNMUTE: "unmuted",
  SEARCH_POSTS: "searched posts for",
  SEARCH_USER: "searched people for",
  TREND: "looked at the trends",
  REFRESH: "looked at the feed again",
  DO_NOTHING: "looked on",
  CREATE_GROUP: "opened a group",
  JOIN_GROUP: "joined a group",
  LEAVE_GROUP: "left a group",
  SEND_TO_GROUP: "wrote to a group",
  TALK: "said",
  SAY: "said",
  THINK: "thought",
  REACH_OUT: "turned to",
  RELATE: "is now related to",
  MOVE_TO: "went to",
};

export interface ToldAction {
  verb: string;
  /** Of whom or of what it was. */
  object: string;
  /** The person's own words. */
  words: string;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** An action in a few words; of a kind that is not known, its name and what it was given. */
export function tellAction(kind: string, args: Record<string, unknown>): ToldAction {
  const verb = VERBS[kind] ?? kind.toLowerCase().replaceAll("_", " ");
  const words = text(args["quote_content"] ?? args["content"] ?? args["message"] ?? args["thought"]);
  const author = text(args["post_author_name"] ?? args["original_author_name"] ?? args["comment_author_name"]);
  const theirs = text(args["post_content"] ?? args["original_content"] ?? args["comment_content"]);
  const target = text(
    args["target_user_name"] ??
      args["target_user"] ??
      args["to_agent_name"] ??
      args["target"] ??
      args["user"] ??
      args["query"] ??
      args["group_name"] ??
      args["location"],
  );
  const quoted = theirs ? `${author ? `${author}: ` : ""}“${theirs}”` : author;
  const isKnown = kind in VERBS;
  const rest = isKnown ? "" : Object.values(args).map(text).filter(Boolean).join(", ");
  return { verb, object: quoted || target || rest, words: isKnown ? words : "" };
}
