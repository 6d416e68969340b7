/** Values that a mind decided by, as rows: what is nested goes below its name. */

export interface ValueRow {
  name: string;
  value: string;
  /** How far it is set in. */
  depth: number;
}

const MOST_ROWS = 400;

function formatValue(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(4)));
  if (value === true) return "yes";
  if (value === false) return "no";
  return value === null || value === undefined ? "–" : String(value);
}

/** A list of alike things is one row each: their values, one after another. */
function formatItem(item: unknown): string {
  if (item === null || typeof item !== "object") return formatValue(item);
  return Object.entries(item)
    .map(([name, value]) => `${name} ${formatItem(value)}`)
    .join(", ");
}

export function listValues(values: Record<string, unknown>, depth = 0): ValueRow[] {
  const rows: ValueRow[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) {
      rows.push({ name, value: value.length === 0 ? "none" : "", depth });
      for (const item of value) rows.push({ name: "", value: formatItem(item), depth: depth + 1 });
    } else if (value !== null && typeof value === "object") {
      rows.push({ name, value: "", depth }, ...listValues(value as Record<string, unknown>, depth + 1));
    } else {
      rows.push({ name, value: formatValue(value), depth });
    }
  }
  return rows.slice(0, MOST_ROWS);
}
