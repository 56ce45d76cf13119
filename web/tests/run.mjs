// Opens pages in a browser, points, clicks, searches and steps: node tests/run.mjs folder-of-pages [screenshots]

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "./browser.mjs";

const [folder, shots] = process.argv.slice(2);
const browser = await launched();
if (shots) mkdirSync(shots, { recursive: true });

async function opened(file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:")) faults.push(`asks for ${request.url()}`);
  });
  const started = Date.now();
  await page.goto(pathToFileURL(file).href + (options.hash ?? ""));
  await page.waitForSelector(".c-jaxpr .line");
  return { page, faults, took: Date.now() - started };
}

/** Opens a column if it is closed. */
async function shown(page, key) {
  if (!(await page.locator(`.c-${key}:visible`).count())) await page.locator(`nav button[data-column="${key}"]`).click();
  await page.waitForSelector(`.c-${key}`);
}

/** What goes wrong when a line is clicked in a page that stands in a notebook. */
async function faultsInNotebook(file) {
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  const text = readFileSync(file, "utf-8").replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  await page.setContent(`<iframe srcdoc="${text}" style="width:900px;height:640px"></iframe>`);
  const inside = page.frameLocator("iframe");
  await inside.locator(".c-jaxpr .line").nth(1).locator(".text").click({ position: { x: 4, y: 4 } });
  await inside.locator(".details article").first().waitFor();
  await page.close();
  return faults;
}

const checks = {
  async "pointing lights the relatives in every column"(page, data) {
    const lines = data.columns.find((c) => c.key === "jaxpr").lines;
    const linked = (n) => data.columns.filter((c) => c.lines.some((l) => l.n?.includes(n))).length;
    const best = lines.findIndex((l) => l.n?.length && linked(l.n[0]) >= Math.min(4, data.columns.length));
    const index = best < 0 ? lines.findIndex((l) => l.n?.length) : best;
    await page.locator(`.c-jaxpr .line[data-i="${index}"] .text`).hover();
    for (const column of data.columns) {
      const expected = column.lines.filter((l) => l.n?.includes(lines[index].n[0])).length;
      const lit = await page.locator(`.c-${column.key} .line.lit`).count();
      assert.equal(lit, expected, `${column.key}: ${lit} lines are lit, ${expected} belong to the equation`);
    }
    await page.mouse.move(2, 2);
  },
  async "a clicked line is explained, and has an address"(page, data) {
    const lines = data.columns.find((c) => c.key === "jaxpr").lines;
    const index = lines.findIndex((l) => l.n?.length);
    await page.locator(`.c-jaxpr .line[data-i="${index}"] .text`).click({ position: { x: 4, y: 4 } });
    const number = lines[index].n[0];
    await page.waitForSelector(".details article");
    const text = await page.locator(".details article").first().innerText();
    assert.ok(text.includes(data.equations[number].meaning.replaceAll("`", "").slice(0, 20)), text);
    assert.ok(text.includes("Why it is there"), text);
    assert.ok(page.url().endsWith(`#op=${number}`), page.url());
  },
  async "arrows move"(page) {
    const at = () => page.evaluate(() => document.querySelector(".line.cursor")?.dataset.i ?? "");
    const before = await at();
    await page.keyboard.press("ArrowDown");
    const after = await at();
    await page.keyboard.press("ArrowUp");
    assert.equal(await at(), before);
    const column = () => page.evaluate(() => document.querySelector(".line.cursor")?.closest(".column").className ?? "");
    const own = await column();
    await page.keyboard.press("ArrowLeft");
    const left = await column();
    assert.ok(left !== own || after === before || left === own, "the cursor is somewhere");
    await page.keyboard.press("ArrowRight");
  },
  async "the slash searches"(page, data) {
    await page.keyboard.press("/");
    const name = data.equations[0].name;
    await page.keyboard.type(name);
    await page.waitForFunction(() => document.querySelectorAll(".line.found").length > 0);
    await page.keyboard.press("Enter");
    assert.ok((await page.locator(".line.cursor").count()) === 1);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll(".line.found").length === 0);
  },
  async "columns open and close"(page, data) {
    for (const key of ["stablehlo", "graph"]) {
      const before = await page.locator(`.c-${key}:visible`).count();
      await page.locator(`nav button[data-column="${key}"]`).click();
      assert.equal(await page.locator(`.c-${key}:visible`).count(), 1 - before, key);
    }
    assert.ok((await page.locator(".c-graph .node").count()) > 0);
    await page.locator('nav button[data-column="stablehlo"]').click();
    const node = page.locator('.c-graph .node[data-n="0"]');
    if (await node.count()) {
      await node.hover();
      assert.ok((await page.locator(".c-jaxpr .line.lit").count()) > 0);
    }
    await page.locator('nav button[data-column="graph"]').click();
    assert.ok(data);
  },
  async "lines fold"(page) {
    await shown(page, "stablehlo");
    const visible = () => page.locator(".c-stablehlo .line:not(.hidden)").count();
    const before = await visible();
    await page.locator(".c-stablehlo .line[data-i='0'] .fold").click();
    assert.ok((await visible()) < before);
    await page.locator(".c-stablehlo .line[data-i='0'] .fold").click();
    assert.equal(await visible(), before);
  },
  async "the player of the trace hides what comes later"(page, data) {
    const slider = page.locator('[data-player="trace"] input');
    await slider.fill("1");
    await page.waitForTimeout(100);
    const held = data.moments[data.equations[0].moment] ?? [];
    assert.equal(await page.locator(".c-python .held").count(), held.length);
    for (const { line, name, type } of held) {
      const text = await page.locator(`.c-python .line[data-i="${line}"] .held`).allInnerTexts();
      assert.ok(text.some((each) => each.startsWith(`${name} ${type}`)), text.join());
    }
    const later = await page.locator(".c-jaxpr .line.later").count();
    assert.ok(data.equations.length < 2 || later > 0);
    await page.locator('[data-player="trace"] button').last().click();
    assert.ok((await page.locator(".c-jaxpr .line.later").count()) <= later);
    await slider.fill(String(data.equations.length));
    await page.waitForFunction(() => document.querySelectorAll(".c-jaxpr .line.later").length === 0);
  },
  async "the player of devices steps"(page, data) {
    if (!data.devices && !data.stuck) return;
    await shown(page, "devices");
    if (data.stuck) {
      assert.ok((await page.locator(".c-devices .words").innerText()).includes("waits in"));
      const red = data.stuck.devices.filter((device) => device.waits).length;
      assert.equal(await page.locator(".c-devices tr:has(td.stuck)").count(), data.devices ? 2 * red : red);
      if (!data.devices) return;
    }
    const columns = () => page.locator(".c-devices thead th").count();
    assert.equal(await columns(), data.devices.steps.length + 1);
    await page.locator('.c-devices [data-player="devices"] input').fill("0");
    assert.equal(await columns(), 2);
    const last = data.devices.steps.length - 1;
    await page.locator('.c-devices [data-player="devices"] input').fill(String(last));
    const text = await page.locator(".c-devices tbody").first().innerText();
    for (const cell of data.devices.steps[last].devices[0].cells) assert.ok(text.includes(cell), cell);
  },
  async "the player of a derivative steps backward"(page, data) {
    if (!data.derivative) return;
    await shown(page, "derivative");
    const slider = page.locator('[data-player="derivative"] input');
    const rows = data.derivative.rows.length;
    const cells = data.derivative.rows.flatMap((row) => row.transposed);
    const visible = () => page.locator(".c-derivative .mirror div:not(.later)").count();
    await slider.fill(String(rows));
    assert.equal(await visible(), 0);
    const needing = cells.find((cell) => cell.needs.length);
    if (needing) {
      await slider.fill(String(rows + needing.order + 1));
      assert.equal(await visible(), needing.order + 1);
      assert.equal(await page.locator(".c-derivative .arrows path").count(), needing.needs.length);
    }
    await slider.fill(String(rows + cells.length));
    assert.equal(await visible(), cells.length);
  },
  async "the player of a batch shows where it is"(page, data) {
    if (!data.batch) return;
    await shown(page, "batch");
    await page.locator('[data-player="batch"] input').fill("1");
    assert.equal(await page.locator(".c-batch tr.later").count(), data.batch.rows.length - 1);
    assert.ok((await page.locator(".c-batch .dim").first().innerText()).length > 0);
    await page.locator('[data-player="batch"] input').fill(String(data.batch.rows.length));
    assert.equal(await page.locator(".c-batch tr.later").count(), 0);
  },
  async "the player of choices steps"(page, data) {
    if (!data.whatIf) return;
    await shown(page, "whatIf");
    const choices = data.whatIf.choices;
    for (const i of [choices.length - 1, 0]) {
      await page.locator('[data-player="whatif"] input').fill(String(i));
      const row = await page.locator(".whatif tr.now").innerText();
      assert.ok(row.includes(choices[i].name), row);
      assert.equal(await page.locator(".whatif .placed").count(), choices[i].arguments.length + choices[i].results.length);
      assert.equal(await page.locator(`.c-choice${i}:visible`).count(), 1);
      const others = choices.map((_, k) => k).filter((k) => k !== i);
      for (const k of others) assert.equal(await page.locator(`.c-choice${k}:visible`).count(), 0);
    }
    const moving = choices[0].collectives.findIndex((c) => c.n?.length);
    if (moving >= 0) {
      await page.locator(".whatif table").last().locator("tbody tr").nth(moving).hover();
      assert.ok((await page.locator(".c-jaxpr .line.lit").count()) > 0);
    }
    await page.mouse.move(2, 2);
  },
  async "the player of calls shows which key fits"(page, data) {
    if (!data.calls) return;
    await shown(page, "calls");
    const last = data.calls.calls.length - 1;
    const slider = page.locator('[data-player="calls"] input');
    for (const at of [0, last]) {
      await slider.fill(String(at));
      assert.equal(await page.locator(".c-calls thead th").count(), at + 2);
      const differs = data.calls.calls.slice(0, at + 1).flatMap((call) => Object.keys(call.differs));
      assert.equal(await page.locator(".c-calls td.differs").count(), differs.length);
    }
    const { words } = data.calls.calls[last];
    const shownWords = await page.locator(".c-calls .words").allInnerTexts();
    assert.equal(shownWords.join("").trim(), words.trim());
    const fits = Object.keys(data.calls.calls[last].key).length - Object.keys(data.calls.calls[last].differs).length;
    assert.equal(await page.locator(".c-calls td.fits.now").count(), fits);
  },
  async "nothing is wider than the window"(page) {
    for (const width of [1280, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} pixels too wide at ${width}`);
      const tall = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
      assert.ok(tall <= 0, `${tall} pixels too tall at ${width}`);
    }
  },
  async "light and dark can be chosen"(page) {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await back();
    await page.locator(".theme").click();
    assert.notEqual(await back(), before);
    await page.locator(".theme").click();
    assert.equal(await back(), before);
  },
};

let failed = 0;
for (const name of readdirSync(folder).filter((n) => n.endsWith(".html")).sort()) {
  const file = join(folder, name);
  const { page, faults, took } = await opened(file);
  const data = await page.evaluate(() => window.minijaxPage);
  for (const [what, check] of Object.entries(checks)) {
    try {
      await check(page, data);
    } catch (error) {
      failed += 1;
      console.error(`${name}: ${what}: ${error.message}`);
    }
  }
  faults.push(...(await faultsInNotebook(file)));
  if (faults.length) {
    failed += 1;
    console.error(`${name}: ${faults.join("; ")}`);
  }
  await page.close();
  const last = data.equations.length - 1;
  const linked = await opened(file, { hash: `#op=${last}` });
  if (last >= 0 && (await linked.page.locator(".details article").count()) !== 1) {
    failed += 1;
    console.error(`${name}: #op=${last} opens nothing`);
  }
  await linked.page.close();
  if (shots) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1280, 1920]) {
        const size = { width, height: width === 1280 ? 800 : 1080 };
        const { page: shot } = await opened(file, { colorScheme, viewport: size, hash: `#op=${Math.min(2, last)}` });
        await shot.screenshot({ path: join(shots, `${name.replace(".html", "")}-${colorScheme}-${width}.png`) });
        const others = ["graph", ...["derivative", "batch", "calls", "whatIf"].filter((key) => data[key])];
        for (const key of width === 1280 ? [] : others) {
          await shown(shot, key);
          await shot.locator(`.c-${key}`).screenshot({ path: join(shots, `${name.replace(".html", "")}-${key}-${colorScheme}.png`) });
        }
        if (width === 1280) {
          await shot.locator('[data-player="trace"] input').fill(String(Math.ceil(data.equations.length / 2)));
          await shot.waitForTimeout(100);
          await shot.screenshot({ path: join(shots, `${name.replace(".html", "")}-trace-${colorScheme}.png`) });
        }
        await shot.close();
      }
    }
  }
  console.log(`${name}: ${data.equations.length} equations, open after ${took} ms`);
}
await browser.close();
process.exit(failed ? 1 : 0);
