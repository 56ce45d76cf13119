// Bundles src/ into the two files that the package carries, and writes down of which sources.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "minijax", "explain", "pages", "assets");
mkdirSync(out, { recursive: true });

await build({
  entryPoints: { page: join(here, "src", "main.tsx") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});

// The test of the package computes the same: names and contents, in order.
const hash = createHash("sha256");
for (const name of readdirSync(join(here, "src")).sort()) {
  hash.update(name + "\n");
  hash.update(readFileSync(join(here, "src", name)));
}
hash.update(readFileSync(join(here, "package-lock.json")));
writeFileSync(join(out, "sources.sha256"), hash.digest("hex") + "\n");
