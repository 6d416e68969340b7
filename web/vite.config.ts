import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Addresses are relative, so that the same files work under any path.
export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: {
    outDir: process.env["SHOAL_PAGES"] ?? "../src/shoal/server/pages",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // `shoal serve` beside `npx vite`: pages that reload as they are edited.
  server: { proxy: { "/api": process.env["SHOAL_SERVER"] ?? "http://127.0.0.1:5001" } },
});
