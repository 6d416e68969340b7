/** Errors of the server, as sentences. */

export class AnswerError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Which part of what was sent is wrong, where there is one. */
    readonly field: string | null = null,
  ) {
    super(message);
  }
}

/** The server did not answer at all. */
export class ServerUnreachable extends Error {
  constructor() {
    super("The server does not answer. Is `shoal serve` still running?");
  }
}

export function describeError(error: unknown): string {
  if (error instanceof Error) return error.message;
  return String(error);
}
