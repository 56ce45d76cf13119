// What if the arguments were placed otherwise: a table of the choices, and a slider through them.

import { useState } from "preact/hooks";
import { DEVICES } from "./colors";
import { bytes, type Placed, type WhatIf } from "./data";

interface Props {
  whatIf: WhatIf;
  onPoint(numbers: number[]): void;
  onChoose(numbers: number[]): void;
  /** Opens the column of a choice, and closes those of the others. */
  onStep(choice: number): void;
}

function seconds(value: number): string {
  const [size, unit] = ([[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]] as [number, string][]).find(([s]) => value >= s) ?? [1e-9, "ns"];
  return value === 0 ? "0 s" : `${Number((value / size).toPrecision(3))} ${unit}`;
}

/** A bar whose parts are as long as their shares of the greatest sum. */
function Bar({ parts, most, text }: { parts: { value: number; colour: string; title: string }[]; most: number; text: string }) {
  return (
    <div class="measure">
      <span class="bar">
        {parts.map(({ value, colour, title }) => (
          <i title={title} style={{ width: `${most ? (100 * value) / most : 0}%`, background: colour }} />
        ))}
      </span>
      <span>{text}</span>
    </div>
  );
}

function Picture({ value }: { value: Placed }) {
  return (
    <div class="placed">
      <div class="head"><b>{value.name}</b><span class="s-type">:{value.type}</span></div>
      <div class="range">{value.spec}, {bytes(value.bytes)}</div>
      {value.tiles ? (
        <div class="tiles" style={{ gridTemplateColumns: `repeat(${value.tiles[0]!.length}, max-content)` }}>
          {value.tiles.flat().map((holders) => (
            <span title={`on ${holders.join(", ")}`} style={{ background: DEVICES[holders[0]! % DEVICES.length] }}>
              {holders.length > 4 ? `${holders.slice(0, 4).join(" ")} …` : holders.join(" ")}
            </span>
          ))}
        </div>
      ) : null}
    </div>
  );
}

/** For each choice its collectives, bytes, memory and time; below, the choice that the slider is at. */
export function WhatIfView({ whatIf, onPoint, onChoose, onStep }: Props) {
  const [at, setAt] = useState(0);
  const choices = whatIf.choices;
  const now = choices[at]!;
  const go = (next: number) => {
    const bounded = Math.max(0, Math.min(choices.length - 1, next));
    setAt(bounded);
    onStep(bounded);
  };
  const axes = Object.keys(whatIf.speeds);
  const colours = new Map(axes.map((axis, i) => [axis, DEVICES[i % DEVICES.length]!]));
  const sum = (by: Record<string, number>) => Object.values(by).reduce((a, b) => a + b, 0);
  const mostSent = Math.max(...choices.map((c) => sum(c.moved)));
  const mostHeld = Math.max(...choices.map((c) => c.memory));
  const slowest = Math.max(...choices.map((c) => c.seconds));
  const byAxis = (by: Record<string, number>, text: (value: number) => string) =>
    axes.filter((axis) => by[axis]).map((axis) => ({ value: by[axis]!, colour: colours.get(axis)!, title: `${axis}: ${text(by[axis]!)}` }));
  return (
    <div class="lines transformed whatif">
      <div class="player" data-player="whatif">
        <b>what if</b>
        <button aria-label="one choice back" onClick={() => go(at - 1)}>‹</button>
        <input type="range" aria-label="choice" min={0} max={choices.length - 1} value={at}
          onInput={(event) => go(Number((event.target as HTMLInputElement).value))} />
        <button aria-label="one choice on" onClick={() => go(at + 1)}>›</button>
        <span class="now">{at + 1} of {choices.length}: {now.name}</span>
      </div>
      <p class="empty">
        {whatIf.mesh.map(([name, size]) => `${name}=${size}`).join(", ")}; a device sends{" "}
        {axes.map((axis) => (
          <span class="dim" style={{ background: colours.get(axis) }}>{whatIf.speeds[axis]! / 1e9} GB/s over {axis}</span>
        ))}
      </p>
      <table>
        <thead><tr><th>choice</th><th>collectives</th><th>sent by each device</th><th>memory</th><th>time</th></tr></thead>
        <tbody>
          {choices.map((choice, i) => (
            <tr key={choice.name} class={i === at ? "now" : ""} onClick={() => go(i)}>
              <th>{choice.name}</th>
              <td>{counts(choice.collectives.map((c) => c.kind))}</td>
              <td><Bar parts={byAxis(choice.moved, bytes)} most={mostSent} text={bytes(sum(choice.moved))} /></td>
              <td><Bar parts={[{ value: choice.memory, colour: "var(--faint)", title: "arguments and results" }]} most={mostHeld} text={bytes(choice.memory)} /></td>
              <td><Bar parts={byAxis(choice.times, seconds)} most={slowest} text={seconds(choice.seconds)} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="pictures">
        {now.arguments.map((value) => <Picture key={value.name} value={value} />)}
        {now.results.map((value) => <Picture key={value.name} value={value} />)}
      </div>
      <table>
        <thead><tr><th>collective</th><th>over</th><th>result</th><th>sent</th><th>times</th><th>line</th></tr></thead>
        <tbody>
          {now.collectives.map((c) => (
            <tr onMouseOver={() => onPoint(c.n ?? [])} onMouseLeave={() => onPoint([])} onClick={() => c.n?.length && onChoose(c.n)}>
              <td><code>{c.kind}</code></td>
              <td>{c.axes ? c.axes.join(", ") : "?"}</td>
              <td><span class="s-type">{c.result}</span></td>
              <td>{bytes(c.moved)}</td>
              <td>{c.times}</td>
              <td>{c.inside.length ? `${c.line} in ${c.inside.join(" > ")}` : c.line}</td>
            </tr>
          ))}
          {now.collectives.length ? null : <tr><td colSpan={6}>nothing moves</td></tr>}
        </tbody>
      </table>
    </div>
  );
}

function counts(kinds: string[]) {
  const found = [...new Set(kinds)];
  if (!found.length) return "none";
  return found.map((kind) => <div>{kinds.filter((k) => k === kind).length} {kind}</div>);
}
