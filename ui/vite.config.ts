import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../ai_whisperer/web",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0, // the page may load nothing but files of its own server
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
});
