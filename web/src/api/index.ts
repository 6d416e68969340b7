/** The source that this page reads: the server it came from. */

import { HttpSource } from "./http.ts";
import type { Source } from "./source.ts";

export const source: Source = new HttpSource();
