import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Where `npm run dev` finds a server: `rota server` on its usual port.
const server = process.env.ROTA_SERVER ?? "http://127.0.0.1:8080";

export default defineConfig({
  // Assets are found beside the page, whatever path the application is mounted under: see <base> in index.html.
  base: "./",
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../src/rota/server/static",
    emptyOutDir: true,
    target: "es2023",
    // The policy of the page allows no data: URLs for scripts, and small files are fine as files.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 400,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": server, "/healthz": server } },
  test: {
    environment: "jsdom",
    setupFiles: ["src/test/setup-jsdom.ts"],
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
