import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const PAGES = process.env["SHOAL_PAGES"] ?? "../src/shoal/server/pages";

/** A page on a disk may run its own scripts and load nothing else; modules are something else to a browser. */
const POLICY =
  "default-src 'none'; script-src 'self' file:; style-src 'self' file:; font-src 'self' file:; " +
  "img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'";

const plainScripts: Plugin = {
  name: "plain-scripts",
  enforce: "post",
  transformIndexHtml: (html) =>
    html
      .replaceAll('<script type="module" crossorigin', "<script defer")
      .replaceAll(" crossorigin", "")
      .replace("<title>", `<meta http-equiv="Content-Security-Policy" content="${POLICY}" />\n    <title>`),
};

// Addresses are relative, so that the same files work under any path.
export default defineConfig(({ mode }) => {
  const isBundle = mode === "bundle";
  return {
    plugins: isBundle ? [svelte(), plainScripts] : [svelte()],
    base: "./",
    define: { __BUNDLE__: JSON.stringify(isBundle) },
    build: {
      outDir: isBundle ? `${PAGES}/bundle` : PAGES,
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 2_000,
      cssCodeSplit: !isBundle,
      ...(isBundle ? { rolldownOptions: { output: { format: "iife" as const, codeSplitting: false } } } : {}),
    },
    // `shoal serve` beside `npx vite`: pages that reload as they are edited.
    server: { proxy: { "/api": process.env["SHOAL_SERVER"] ?? "http://127.0.0.1:5001" } },
  };
});
