/** The source that this page reads: the server it came from, or the folder that it is in. */

import { BundleSource } from "./bundle.ts";
import { HttpSource } from "./http.ts";
import type { Source } from "./source.ts";

/** Whether this is the page of a bundle; it is built apart, as scripts that work from a disk. */
declare const __BUNDLE__: boolean;

export const source: Source = __BUNDLE__ ? new BundleSource() : new HttpSource();
