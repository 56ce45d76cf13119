// The page: columns side by side, what is pointed at lights everywhere, and what is chosen is explained.

import { render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./page.css";
import { CallsView } from "./calls";
import { bytes, read, type Data, type Equation } from "./data";
import { GraphView } from "./graph";
import { Links } from "./links";
import { DevicesView, StuckView, TraceBar } from "./players";
import { Text } from "./text";
import { BatchView, DerivativeView } from "./transformed";
import { Values } from "./values";
import { WhatIfView } from "./whatif";

/** What is open at first, as far as there is room: the first come first. */
const WORTH = ["jaxpr", "whatIf", "python", "choice0", "devices", "original", "stablehlo", "derivative", "batch", "calls", "optimized", "values"];
const NARROWEST = 255;
const WIDE = new Set(["devices", "derivative", "batch", "calls", "whatIf"]);

function closedAtFirst(keys: string[]): Set<string> {
  const found = new Set(keys);
  let room = innerWidth;
  for (const key of WORTH.filter((each) => found.has(each))) {
    room -= WIDE.has(key) ? 2.2 * NARROWEST : NARROWEST;
    if (room >= 0) found.delete(key);
  }
  return found;
}

/** A sentence in which what stands between backticks is code. */
function Sentence({ text }: { text: string }) {
  return <>{text.split("`").map((part, i) => (i % 2 ? <code>{part}</code> : part))}</>;
}

function numberInHash(): number | null {
  const found = /[#&]op=(\d+)/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

function Details({ data, chosen, onGo }: { data: Data; chosen: number[]; onGo(n: number): void }) {
  const shown = chosen.map((n) => data.equations[n]).filter((e): e is Equation => Boolean(e));
  if (!shown.length) {
    return (
      <p class="empty">
        Point at a line: all that it became, and all that it came from, lights in every column. Click it to read why it
        is there. Arrows move, <kbd>/</kbd> searches, <kbd>Esc</kbd> lets go.
      </p>
    );
  }
  return (
    <div class="details">
      {shown.slice(0, 12).map((e) => (
        <article key={e.number}>
          <h3>
            <a href={`#op=${e.number}`} onClick={(event) => { event.preventDefault(); onGo(e.number); }}>{e.name}</a>
            <span class={`role r-${e.role}`}>{e.role}</span>
            <span class="s-type">{e.types.join(", ")}</span>
            <span class="bytes">{bytes(e.bytes)}</span>
          </h3>
          <p><Sentence text={e.meaning} /></p>
          {e.explained.map((text) => <p class="explained">{text}</p>)}
          <p><b>Why it is there:</b> <Sentence text={e.why} /></p>
          <p class="places">
            {e.line ? <>at {e.line}</> : "no line of yours"}
            {e.called.length ? <span> · called from {e.called.join(", ")}</span> : null}
          </p>
          {Object.entries(e.fate).map(([key, text]) => (
            <p class="fate">
              <b>{data.columns.find((c) => c.key === key)?.title}:</b> no line of its own; <Sentence text={text} />
            </p>
          ))}
        </article>
      ))}
      {shown.length > 12 ? <p class="empty">… and {shown.length - 12} more equations</p> : null}
    </div>
  );
}

function Page({ data }: { data: Data }) {
  const links = useMemo(() => new Links(data.columns), [data]);
  const extra = [
    { key: "graph", title: "graph" },
    { key: "values", title: "values and shards" },
    ...(data.derivative ? [{ key: "derivative", title: "derivative" }] : []),
    ...(data.batch ? [{ key: "batch", title: "batch" }] : []),
    ...(data.devices || data.stuck ? [{ key: "devices", title: "devices" }] : []),
    ...(data.whatIf ? [{ key: "whatIf", title: "what if" }] : []),
    ...(data.calls ? [{ key: "calls", title: "calls" }] : []),
  ];
  const titles = [...data.columns, ...extra];
  const [closed, setClosed] = useState<Set<string>>(() => closedAtFirst(titles.map((c) => c.key)));
  const [chosen, setChosen] = useState<number[]>([]);
  // Keys come faster than the page is rendered: what they start from is not state.
  const cursor = useRef({ column: 1, line: -1 });
  const [query, setQuery] = useState("");
  const [theme, setTheme] = useState(document.documentElement.dataset["theme"] ?? "");
  const [together, setTogether] = useState(true);
  const [wraps, setWraps] = useState(true);
  const search = useRef<HTMLInputElement>(null);
  const held = useRef<number[]>([]);

  const point = useCallback((numbers: number[]) => links.light(numbers, "lit"), [links]);

  const align = useCallback(
    (numbers: number[], except: number, offset: number | null) => {
      data.columns.forEach((_, column) => {
        if (column === except) return;
        const line = links.first(column, numbers);
        const row = line === null ? undefined : links.row({ column, line });
        const box = row?.parentElement;
        if (!row || !box || row.classList.contains("hidden")) return;
        const at = row.offsetTop - box.offsetTop;
        const inside = at - box.scrollTop;
        if (offset !== null) box.scrollTop = at - offset;
        else if (inside < 30 || inside > box.clientHeight - 40) box.scrollTop = at - box.clientHeight / 3;
      });
    },
    [data, links],
  );

  const choose = useCallback(
    (numbers: number[], column: number, line: number) => {
      held.current = numbers;
      setChosen(numbers);
      cursor.current = { column, line };
      links.light(numbers, "chosen");
      align(numbers, column, null);
      document.querySelectorAll(".cursor").forEach((e) => e.classList.remove("cursor"));
      const row = links.row({ column, line });
      row?.classList.add("cursor");
      row?.scrollIntoView({ block: "nearest", inline: "nearest" });
      const place = numbers.length === 1 ? `#op=${numbers[0]}` : location.pathname + location.search;
      // Inside of a notebook a page has no address of its own.
      if (location.protocol !== "about:") history.replaceState(null, "", place);
    },
    [links, align],
  );

  const chooseLine = useCallback(
    (column: number, line: number) => choose(data.columns[column]!.lines[line]!.n ?? [], column, line),
    [data, choose],
  );

  const chooseNumbers = useCallback(
    (numbers: number[]) => {
      const column = data.columns.findIndex((c) => c.key === "jaxpr");
      choose(numbers, column, links.first(column, numbers) ?? -1);
    },
    [data, links, choose],
  );
  const chooseNumber = useCallback((number: number) => chooseNumbers([number]), [chooseNumbers]);

  useEffect(() => {
    const go = () => {
      const number = numberInHash();
      if (number !== null && data.equations[number]) chooseNumber(number);
    };
    go();
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, [data, chooseNumber]);

  // What columns are drawn anew has lost its lights.
  useEffect(() => {
    links.light(held.current, "chosen");
  }, [closed]);

  const found = useMemo(() => {
    const text = query.trim().toLowerCase();
    if (!text) return [];
    return data.columns.flatMap((column, c) =>
      closed.has(column.key) ? [] : column.lines.flatMap((line, l) => (line.t.toLowerCase().includes(text) ? [{ column: c, line: l }] : [])),
    );
  }, [query, closed, data]);
  useEffect(() => {
    document.querySelectorAll(".found").forEach((e) => e.classList.remove("found"));
    for (const spot of found) links.row(spot)?.classList.add("found");
    const first = found[0];
    if (first) links.row(first)?.scrollIntoView({ block: "nearest" });
  }, [found, links]);

  const step = useCallback(
    (by: number) => {
      const lines = data.columns[cursor.current.column]?.lines ?? [];
      for (let i = cursor.current.line + by; i >= 0 && i < lines.length; i += by) {
        const row = links.row({ column: cursor.current.column, line: i });
        if (row && !row.classList.contains("hidden") && lines[i]!.n) return chooseLine(cursor.current.column, i);
      }
    },
    [data, links, chooseLine],
  );
  const side = useCallback(
    (by: number) => {
      for (let c = cursor.current.column + by; c >= 0 && c < data.columns.length; c += by) {
        if (closed.has(data.columns[c]!.key)) continue;
        const line = links.first(c, held.current);
        if (line !== null) return choose(held.current, c, line);
      }
    },
    [data, links, closed, choose],
  );

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement;
      if (event.key === "/" && !typing) search.current?.focus();
      else if (event.key === "Escape") {
        setQuery("");
        search.current?.blur();
        choose([], cursor.current.column, -1);
      } else if (event.key === "Enter" && typing && found.length) {
        const now = found.findIndex((s) => s.column === cursor.current.column && s.line === cursor.current.line);
        const next = found[(now + 1) % found.length]!;
        chooseLine(next.column, next.line);
      } else if (!typing && event.key === "ArrowDown") step(1);
      else if (!typing && event.key === "ArrowUp") step(-1);
      else if (!typing && event.key === "ArrowRight") side(1);
      else if (!typing && event.key === "ArrowLeft") side(-1);
      else if (!typing && event.key === " ") links.row(cursor.current)?.querySelector<HTMLElement>(".fold")?.click();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [found, step, side, choose, chooseLine, links]);

  const toggle = (key: string) => {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
    // What was opened may stand outside of the window.
    if (!next.has(key)) setTimeout(() => document.querySelector(`.c-${key}`)?.scrollIntoView({ inline: "nearest", block: "nearest" }), 50);
  };
  const compare = (choice: number) => {
    const next = new Set(closed);
    for (const key of data.columns.map((c) => c.key).filter((k) => k.startsWith("choice"))) next.add(key);
    next.delete(`choice${choice}`);
    setClosed(next);
  };
  const change = () => {
    const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset["theme"] = dark ? "light" : "dark";
    setTheme(dark ? "light" : "dark");
  };

  return (
    <main>
      <header>
        <h1>{data.name}</h1>
        <nav aria-label="columns">
          {titles.map((c) => (
            <button key={c.key} aria-pressed={!closed.has(c.key)} data-column={c.key} onClick={() => toggle(c.key)}>
              {c.title}
            </button>
          ))}
        </nav>
        <span class="tools">
          <label><input type="checkbox" class="wrap" checked={wraps} onChange={() => setWraps(!wraps)} /> wrap</label>
          <label><input type="checkbox" checked={together} onChange={() => setTogether(!together)} /> scroll together</label>
          <input
            ref={search}
            type="search"
            placeholder="search  ( / )"
            aria-label="search"
            value={query}
            onInput={(event) => setQuery((event.target as HTMLInputElement).value)}
          />
          <span class="count">{query ? `${found.length} lines` : ""}</span>
          <button class="theme" aria-label="light or dark" onClick={change}>◐</button>
        </span>
      </header>
      <TraceBar data={data} links={links} onPoint={point} onChoose={chooseNumber} />
      <div class={wraps ? "columns wraps" : "columns"}>
        {data.columns.map((column, index) => (
          <section key={column.key} class={`column c-${column.key}`} hidden={closed.has(column.key)}>
            <h2>{column.title}</h2>
            <Text
              column={column}
              index={index}
              links={links}
              equations={data.equations}
              onPoint={point}
              onChoose={chooseLine}
              onScrolled={(c, l, offset) => together && align(data.columns[c]!.lines[l]!.n ?? [], c, offset)}
            />
          </section>
        ))}
        {closed.has("graph") ? null : (
          <section class="column c-graph">
            <h2>graph</h2>
            <GraphView data={data} links={links} onPoint={point} onChoose={chooseNumber} />
          </section>
        )}
        {closed.has("values") ? null : (
          <section class="column c-values">
            <h2>values and shards</h2>
            <Values values={data.values} links={links} onPoint={point} onChoose={chooseNumber} />
          </section>
        )}
        {closed.has("derivative") || !data.derivative ? null : (
          <section class="column c-derivative">
            <h2>derivative</h2>
            <DerivativeView derivative={data.derivative} onPoint={point} onChoose={chooseNumbers} />
          </section>
        )}
        {closed.has("batch") || !data.batch ? null : (
          <section class="column c-batch">
            <h2>batch</h2>
            <BatchView batch={data.batch} onPoint={point} onChoose={chooseNumbers} />
          </section>
        )}
        {closed.has("devices") || !data.stuck || data.devices ? null : (
          <section class="column c-devices">
            <h2>devices</h2>
            <div class="lines devices"><StuckView stuck={data.stuck} /></div>
          </section>
        )}
        {closed.has("whatIf") || !data.whatIf ? null : (
          <section class="column c-whatIf">
            <h2>what if</h2>
            <WhatIfView whatIf={data.whatIf} onPoint={point} onChoose={chooseNumbers} onStep={compare} />
          </section>
        )}
        {closed.has("devices") || !data.devices ? null : (
          <section class="column c-devices">
            <h2>devices</h2>
            <DevicesView devices={data.devices} stuck={data.stuck} links={links} onPoint={point} onChoose={chooseNumber} />
          </section>
        )}
        {closed.has("calls") || !data.calls ? null : (
          <section class="column c-calls">
            <h2>calls</h2>
            <CallsView calls={data.calls} />
          </section>
        )}
      </div>
      <footer aria-live="polite">
        <Details data={data} chosen={chosen} onGo={chooseNumber} />
      </footer>
    </main>
  );
}

const root = document.getElementById("page");
declare global {
  interface Window {
    /** What the page shows, for scripts and tests. */
    minijaxPage?: Data;
  }
}
if (root) {
  void read().then((data) => {
    window.minijaxPage = data;
    render(<Page data={data} />, root);
  });
}
