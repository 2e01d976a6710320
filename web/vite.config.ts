import { defineConfig } from "vite";

// Two pages, built into the Python package. Every address is relative, so that the app can be mounted anywhere.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/dpbandits/service/web",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: { input: ["index.html", "demo.html"] },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8000" } },
});
