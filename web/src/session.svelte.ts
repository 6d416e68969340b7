/** Whether the server knows who is here. On other addresses than the loopback one, it asks for its token. */

class Session {
  /** The server has asked for its token. */
  isNeeded = $state(false);

  ask(): void {
    this.isNeeded = true;
  }

  /** Give the token; the server answers with a cookie that pages cannot read. Returns why it was refused. */
  async open(token: string): Promise<string | null> {
    const response = await fetch("api/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    }).catch(() => null);
    if (response?.ok) {
      location.reload();
      return null;
    }
    if (response === null) return "The server does not answer.";
    return response.status === 429 ? "Too many wrong tokens. Wait a while." : "That is not the token of this server.";
  }
}

export const session = new Session();
