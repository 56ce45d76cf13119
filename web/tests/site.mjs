// Walks a built site in a browser: node tests/site.mjs folder-of-site [screenshots]
//
// Every page that has a figure or a frame is opened; none of these may be blank. The search has to find.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "./browser.mjs";

const [folder, shots] = process.argv.slice(2);
if (shots) mkdirSync(shots, { recursive: true });
const browser = await launched();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
let faults = [];
context.on("request", (request) => {
  if (!/^(file|data|blob):/.test(request.url())) faults.push(`asks for ${request.url()}`);
});

/** How many colours an element has on the screen. */
async function colours(page, element) {
  await element.scrollIntoViewIfNeeded();
  const picture = (await element.screenshot()).toString("base64");
  return page.evaluate(async (letters) => {
    const image = new Image();
    image.src = `data:image/png;base64,${letters}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    const pixels = new Uint32Array(drawing.getImageData(0, 0, image.width, image.height).data.buffer);
    return new Set(pixels).size;
  }, picture);
}

const files = readdirSync(folder, { recursive: true })
  .filter((name) => name.endsWith(".html") && !/^(pages|source|_static)/.test(name))
  .sort();
// In the content: the theme has pictures of its own.
const figured = files.filter((name) => /<(img|iframe)\b/.test(readFileSync(join(folder, name), "utf8").split("<article")[1] ?? ""));
let looked = 0;
for (const name of figured) {
  faults = [];
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(pathToFileURL(join(folder, name)).href);
  for (const element of await page.locator("article img").all()) {
    looked += 1;
    const source = await element.getAttribute("src");
    if (!(await element.evaluate((e) => e.decode().then(() => e.naturalWidth > 0, () => false)))) faults.push(`${source} does not load`);
    else if ((await colours(page, element)) < 3) faults.push(`${source} is blank`);
  }
  for (const element of await page.locator("article iframe").all()) {
    looked += 1;
    await element.scrollIntoViewIfNeeded();
    const frame = await (await element.elementHandle()).contentFrame();
    try {
      await frame.waitForSelector(".c-jaxpr .line, body > *:not(script)", { timeout: 20000 });
      await frame.waitForSelector(".c-jaxpr .line", { timeout: 20000 });
    } catch {
      faults.push(`${(await element.getAttribute("src")) ?? "a frame"} is blank`);
    }
  }
  if (shots) await page.screenshot({ path: join(shots, `${name.replaceAll("/", "-").replace(".html", "")}.png`) });
  await page.close();
  for (const fault of faults) console.error(`${relative(".", name)}: ${fault}`);
  if (faults.length) process.exitCode = 1;
}

faults = [];
const page = await context.newPage();
for (const [words, expected] of [["psum", "minijax.lax"], ["transpose", "docs/"]]) {
  await page.goto(`${pathToFileURL(join(folder, "search.html")).href}?q=${words}`);
  await page.waitForSelector("#search-results li a", { timeout: 20000 });
  const found = await page.locator("#search-results li a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  assert.ok(found.some((href) => href.includes(expected)), `a search for ${words} finds ${found.slice(0, 5)}`);
}
for (const scheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(pathToFileURL(join(folder, "index.html")).href);
  if (shots) await page.screenshot({ path: join(shots, `first-${scheme}.png`) });
}
if (faults.length) {
  console.error(faults.join("\n"));
  process.exitCode = 1;
}
console.log(`${files.length} pages, ${figured.length} with figures, ${looked} figures and frames looked at`);
await browser.close();
