// The players of a derivative and of a batch: a row for each equation of the function before.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { DEVICES, highlighted } from "./colors";
import type { Batch, Derivative } from "./data";

interface Props {
  onPoint(numbers: number[]): void;
  onChoose(numbers: number[]): void;
}

function Code({ text }: { text: string }) {
  return <code dangerouslySetInnerHTML={{ __html: highlighted(text, "jaxpr") }} />;
}

/** Some of many names. */
function some(names: string[]): string {
  return names.length > 4 ? `${names.slice(0, 3).join(" ")} … (${names.length})` : names.join(" ");
}

/** The names that an equation gives. */
function given(text: string): string[] {
  return (text.split(" = ")[0] ?? "").split(" ").map((each) => each.split(":")[0]!);
}

/** Forward downwards, backward upwards; arrows from what is kept to where it is needed. */
export function DerivativeView({ derivative, onPoint, onChoose }: Props & { derivative: Derivative }) {
  const rows = derivative.rows;
  const backward = rows.reduce((count, row) => count + row.transposed.length, 0);
  const last = rows.length + backward;
  const [at, setAt] = useState(last);
  const [arrows, setArrows] = useState<{ path: string; colour: string }[]>([]);
  const body = useRef<HTMLDivElement>(null);
  const order = at - rows.length - 1;
  const now = order >= 0 ? rows.flatMap((row) => row.transposed).find((cell) => cell.order === order) : undefined;
  const colours = new Map(derivative.residuals.map((r, i) => [r.name, DEVICES[i % DEVICES.length]!]));
  const defined = new Set(rows.flatMap((row) => row.known.flatMap(given)));
  const fromArguments = derivative.residuals.filter((r) => !defined.has(r.name));

  useLayoutEffect(() => {
    const box = body.current!;
    const target = box.querySelector<HTMLElement>(".mirror .now");
    const frame = box.getBoundingClientRect();
    const found = (now && target ? now.needs : []).flatMap((name) => {
      const source = box.querySelector<HTMLElement>(`[data-kept="${name}"]`);
      if (!source) return [];
      const from = source.getBoundingClientRect();
      const to = target!.getBoundingClientRect();
      const [x1, y1] = [from.right - frame.left, from.top + from.height / 2 - frame.top];
      const [x2, y2] = [to.left - frame.left - 3, to.top + to.height / 2 - frame.top];
      return [{ path: `M${x1} ${y1}C${x1 + 60} ${y1} ${x2 - 60} ${y2} ${x2} ${y2}`, colour: colours.get(name)! }];
    });
    setArrows(found);
    if (at !== last) target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at, derivative]);

  const go = (next: number) => setAt(Math.max(0, Math.min(last, next)));
  const kept = (names: string[]) =>
    names.filter((name) => colours.has(name)).map((name) => (
      <span class="kept" data-kept={name} style={{ background: colours.get(name) }} title="kept for the backward pass">{name}</span>
    ));
  return (
    <div class="lines transformed">
      <div class="player" data-player="derivative">
        <b>derivative</b>
        <button aria-label="one step back" onClick={() => go(at - 1)}>‹</button>
        <input type="range" aria-label="step" min={0} max={last} value={at}
          onInput={(event) => go(Number((event.target as HTMLInputElement).value))} />
        <button aria-label="one step on" onClick={() => go(at + 1)}>›</button>
        <span class="now">
          {at <= rows.length ? `forward: ${at} of ${rows.length} rows` : `backward: ${order + 1} of ${backward}`}
          {now?.sum ? " · cotangents of one value are added" : ""}
          {now?.needs.length ? ` · needs ${now.needs.join(" ")}` : ""}
        </span>
      </div>
      <div class="under" ref={body}>
        <table>
          <thead>
            <tr>
              <th>equation</th>
              <th>forward ↓ <i>known</i></th>
              <th>linear ↓ <i>in the tangents {some(derivative.tangents)}</i></th>
              <th>backward ↑ <i>its transpose, from {some(derivative.cotangents)}</i></th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th>arguments</th>
              <td>{kept(fromArguments.map((r) => r.name))}</td>
              <td />
              <td class="mirror">{at === last ? <>gradients: <code>{some(derivative.gradients)}</code></> : null}</td>
            </tr>
            {rows.map((row, r) => (
              <tr
                key={row.number}
                class={r >= at ? "later" : ""}
                onMouseOver={() => onPoint(row.n)}
                onMouseLeave={() => onPoint([])}
                onClick={() => row.n.length && onChoose(row.n)}
              >
                <th title={row.line}>{row.number < 0 ? "sums" : row.name}</th>
                <td class="known">{row.known.map((text) => <div><Code text={text} />{kept(given(text))}</div>)}</td>
                <td class="linear">{row.linear.map((cell) => <div><Code text={cell.text} /></div>)}</td>
                <td class="mirror">
                  {[...row.transposed].reverse().map((cell) => (
                    <div class={`${cell.order > order ? "later" : ""} ${cell.order === order ? "now" : ""} ${cell.sum ? "sum" : ""}`}>
                      <Code text={cell.text} />
                      {cell.needs.map((name) => <span class="kept" style={{ background: colours.get(name) }}>{name}</span>)}
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <svg class="arrows" aria-hidden="true">
          {arrows.map(({ path, colour }) => <path d={path} style={{ stroke: colour }} />)}
        </svg>
      </div>
      <p class="empty">
        Kept for the backward pass: {some(derivative.residuals.map((r) => `${r.name}:${r.type}`)) || "nothing"} ({derivative.residuals.reduce((sum, r) => sum + r.bytes, 0)} bytes).
        Names of tangents begin with t, those of cotangents with c.
      </p>
    </div>
  );
}

/** What each equation of one example became for all of them, and which dimension is the batch. */
export function BatchView({ batch, onPoint, onChoose }: Props & { batch: Batch }) {
  const [at, setAt] = useState(batch.rows.length);
  const go = (next: number) => setAt(Math.max(0, Math.min(batch.rows.length, next)));
  const place = (dims: (number | null)[]) =>
    dims.map((dim) => (dim === null ? <span class="dim none">the same for all</span> : <span class="dim">dimension {dim}</span>));
  return (
    <div class="lines transformed">
      <div class="player" data-player="batch">
        <b>batch</b>
        <button aria-label="one step back" onClick={() => go(at - 1)}>‹</button>
        <input type="range" aria-label="step" min={0} max={batch.rows.length} value={at}
          onInput={(event) => go(Number((event.target as HTMLInputElement).value))} />
        <button aria-label="one step on" onClick={() => go(at + 1)}>›</button>
        <span class="now">{at} of {batch.rows.length} equations, {batch.size} examples</span>
      </div>
      <table>
        <thead><tr><th>one example</th><th>where the batch is</th><th>all of them</th></tr></thead>
        <tbody>
          {batch.arguments.map((argument) => (
            <tr><td><code>{argument.name}</code> <i>argument</i></td><td>{place([argument.dim])}</td><td><Code text={argument.batched} /></td></tr>
          ))}
          {batch.rows.map((row, r) => (
            <tr
              key={row.number}
              class={`${r >= at ? "later" : ""} ${r === at - 1 ? "now" : ""}`}
              onMouseOver={() => onPoint(row.n)}
              onMouseLeave={() => onPoint([])}
              onClick={() => row.n.length && onChoose(row.n)}
            >
              <td title={row.line}><Code text={row.text} /></td>
              <td>{place(row.dims)}</td>
              <td>{row.became.map((text) => <div><Code text={text} /></div>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
