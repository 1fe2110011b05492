// Configuration of the site. `cargo xtask site` copies the pages of ../nav.json to a folder and builds it there.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { defineConfig } from "vitepress";

const sections = JSON.parse(readFileSync(join(process.env.OUTLIVE_SITE, "nav.json"), "utf8"));

// The same anchors as on a code host, so that one link works in both places.
const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{Pc}\- ]/gu, "")
    .replace(/ /g, "-");

export default defineConfig({
  title: "Outlive",
  description: "MCP tools whose work outlives the request",
  lang: "en-US",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/images/logo.svg" }]],
  cleanUrls: true,
  lastUpdated: false,
  // In kB. The largest file is the search index, which loads when a reader opens the search.
  vite: { build: { chunkSizeWarningLimit: 1000 } },
  markdown: { anchor: { slugify }, theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" } },
  themeConfig: {
    logo: { src: "/images/logo.svg", alt: "" },
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sections.map(({ text, items }) => ({
      text,
      items: items.map((item) => ({ text: item.text, link: `/${item.url.replace(/(^|\/)index$/, "$1")}` })),
    })),
    socialLinks: [{ icon: "github", link: process.env.OUTLIVE_REPOSITORY }],
  },
});
