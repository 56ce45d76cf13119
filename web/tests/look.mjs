// Takes screenshots of pages: node tests/look.mjs out page.html ...

import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "./browser.mjs";

const [out, ...files] = process.argv.slice(2);
const browser = await launched();
for (const file of files) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 1920]) {
      const page = await browser.newPage({ colorScheme, viewport: { width, height: width === 1280 ? 800 : 1080 } });
      await page.goto(pathToFileURL(file).href);
      const line = page.locator(".c-jaxpr .line[data-i]").nth(3);
      if (await line.count()) await line.click();
      await page.screenshot({ path: join(out, `${basename(file, ".html")}-${colorScheme}-${width}.png`) });
      await page.close();
    }
  }
}
await browser.close();
