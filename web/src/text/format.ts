/** Numbers, money and times as people read them. */

const WHOLE = new Intl.NumberFormat("en-US");
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function formatCount(value: number): string {
  return Math.abs(value) >= 100_000 ? COMPACT.format(value) : WHOLE.format(value);
}

/** "1 post", "2,398 posts". */
export function formatNumber(value: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(value)} ${value === 1 ? noun : plural}`;
}

export function formatMoney(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "$0";
  return value < 0.01 ? "< $0.01" : `$${value.toFixed(2)}`;
}

export function formatShare(value: number): string {
  const percent = value * 100;
  return `${percent !== 0 && Math.abs(percent) < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** A figure between -1 and 1, or any other, with as many digits as it deserves. */
export function formatFigure(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return formatCount(value);
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export function formatSigned(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

const WEEKDAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const HOURS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

/** Simulated time. It has no zone, so it is never moved into the reader's. */
export function formatSimulated(time: string | null | undefined, withDay = true): string {
  if (!time) return "";
  const date = new Date(/[zZ]|[+-]\d\d:\d\d$/.test(time) ? time : `${time}Z`);
  if (Number.isNaN(date.getTime())) return time;
  return withDay ? `${WEEKDAY.format(date)}, ${HOURS.format(date)}` : HOURS.format(date);
}

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** How long ago, in the reader's time: "3 minutes ago". */
export function formatAgo(time: string | null | undefined, now = Date.now()): string {
  if (!time) return "";
  const seconds = (Date.parse(time) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.round(seconds / size), unit);
  }
  return "just now";
}

/** The letters of an avatar. Works for names of one word and for scripts without spaces. */
export function initials(name: string): string {
  const words = name
    .trim()
    .split(/[\s_.-]+/)
    .filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : [words[0]];
  return letters
    .map((word) => (word ? (Array.from(word)[0] ?? "") : ""))
    .join("")
    .toLocaleUpperCase();
}

/** A text of at most so many letters. */
export function clipText(text: string, most: number): string {
  const letters = Array.from(text);
  return letters.length > most
    ? `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`
    : text;
}
