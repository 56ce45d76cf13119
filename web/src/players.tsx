// The players: a slider that traces the program again, and one that steps through its devices.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { DEVICES } from "./colors";
import type { Data, Devices, Step, Stuck } from "./data";
import type { Links } from "./links";

interface TraceProps {
  data: Data;
  links: Links;
  onPoint(numbers: number[]): void;
  onChoose(n: number): void;
}

const TRACERS: Record<string, string> = {
  StagingTracer: "stands for a variable of the jaxpr",
  JVPTracer: "a value and its tangent",
  BatchTracer: "all examples of a batch: the type is that of one",
};

/** Writes beside the variables of Python what they hold at a moment; returns what takes it away. */
function hold(data: Data, links: Links, moment: number | null, onPoint: (numbers: number[]) => void): () => void {
  const column = data.columns.findIndex((c) => c.key === "python");
  const shown = (moment === null ? [] : data.moments[moment]!).map((held) => {
    const chip = document.createElement("span");
    chip.className = "held";
    chip.title = `${held.tracer}: ${TRACERS[held.tracer] ?? "a value that is traced"}`;
    chip.append(Object.assign(document.createElement("b"), { textContent: held.name }), ` ${held.type} `);
    chip.append(Object.assign(document.createElement("i"), { textContent: held.tracer.replace("Tracer", "") }));
    chip.onmouseover = (event) => {
      event.stopPropagation();
      onPoint(held.n === null ? [] : [held.n]);
    };
    links.row({ column, line: held.line })?.append(chip);
    return chip;
  });
  return () => shown.forEach((chip) => chip.remove());
}

/** Shows the equations that tracing has written down so far; the line that wrote the last one is chosen. */
export function TraceBar({ data, links, onPoint, onChoose }: TraceProps) {
  const last = data.equations.length;
  const [step, setStep] = useState(last);
  const [plays, setPlays] = useState(false);
  const column = data.columns.findIndex((c) => c.key === "jaxpr");
  useEffect(() => {
    data.columns[column]?.lines.forEach((line, i) => {
      const later = Boolean(line.n?.length && line.n.every((n) => n >= step));
      links.row({ column, line: i })?.classList.toggle("later", later);
    });
  }, [step, data]);
  const now = step > 0 ? data.equations[step - 1] : undefined;
  useEffect(() => (plays ? hold(data, links, now?.moment ?? null, onPoint) : undefined), [plays, step, data]);
  const go = (next: number) => {
    setPlays(true);
    const bounded = Math.max(0, Math.min(last, next));
    setStep(bounded);
    if (bounded > 0) onChoose(bounded - 1);
  };
  return (
    <div class="player" data-player="trace">
      <b>trace</b>
      <button aria-label="one step back" onClick={() => go(step - 1)}>‹</button>
      <input
        type="range"
        aria-label="how far tracing has come"
        min={0}
        max={last}
        value={step}
        onInput={(event) => go(Number((event.target as HTMLInputElement).value))}
      />
      <button aria-label="one step on" onClick={() => go(step + 1)}>›</button>
      <span class="now">
        {step} of {last} equations{now ? <> · <code>{now.name}</code> {now.types.join(", ")} {now.line ? (now.moment === null && now.role !== "primal" ? `made later, of ${now.line}` : `at ${now.line}`) : ""}</> : null}
      </span>
    </div>
  );
}

interface Props {
  devices: Devices;
  stuck: Stuck | null | undefined;
  links: Links;
  onPoint(numbers: number[]): void;
  onChoose(number: number): void;
}

/** Devices that would wait for ever, in the words of the oracle. */
export function StuckView({ stuck }: { stuck: Stuck }) {
  return (
    <>
      <p class="empty">The program was not run: its devices would wait for ever.</p>
      <table>
        <tbody>
          {stuck.devices.map((device) => (
            <tr>
              <th>{device.name}</th>
              <td class={device.waits ? "stuck" : ""}>{device.waits ? "✗ " : ""}{device.does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <pre class="words">{stuck.words}</pre>
    </>
  );
}

/** A row for each device, a column for each step: what it holds, and what moves before. */
export function DevicesView({ devices, stuck, onPoint, onChoose }: Props) {
  const [at, setAt] = useState(devices.steps.length - 1);
  const shown = devices.steps.slice(0, at + 1);
  const now = devices.steps[at];
  const box = useRef<HTMLDivElement>(null);
  // The step that is shown is the last, and may stand outside of the column.
  useLayoutEffect(() => {
    box.current!.scrollLeft = box.current!.scrollWidth;
  }, [at]);
  return (
    <div class="lines devices" ref={box}>
      <div class="player" data-player="devices">
        <b>devices</b>
        <button aria-label="one step back" onClick={() => setAt(Math.max(0, at - 1))}>‹</button>
        <input
          type="range"
          aria-label="step"
          min={0}
          max={devices.steps.length - 1}
          value={at}
          onInput={(event) => setAt(Number((event.target as HTMLInputElement).value))}
        />
        <button aria-label="one step on" onClick={() => setAt(Math.min(devices.steps.length - 1, at + 1))}>›</button>
        <span class="now">{now ? `${at + 1} of ${devices.steps.length}: ${now.title} ${now.line}` : ""}</span>
      </div>
      <table>
        <thead>
          <tr>
            <th />
            {shown.map((step) => (
              <th key={step.number} onMouseOver={() => onPoint([step.number])} onClick={() => step.number >= 0 && onChoose(step.number)}>
                {step.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {devices.names.map((name, d) => (
            <tr key={name}>
              <th style={{ boxShadow: `inset 7px 0 ${DEVICES[d % DEVICES.length]}`, paddingLeft: "14px" }}>{name}</th>
              {shown.map((step, s) => <Cell key={s} step={step} device={d} isNow={s === at} names={devices.names} />)}
            </tr>
          ))}
        </tbody>
      </table>
      {devices.legend.length ? (
        <dl>
          {devices.legend.map(({ name, meaning }) => (
            <>
              <dt>{name}</dt>
              <dd>{meaning}</dd>
            </>
          ))}
        </dl>
      ) : null}
      {stuck ? <StuckView stuck={stuck} /> : null}
    </div>
  );
}

function Cell({ step, device, isNow, names }: { step: Step; device: number; isNow: boolean; names: string[] }) {
  const own = step.devices[device]!;
  const from = step.arrows.filter(([, to]) => to === device).map(([giver]) => giver);
  return (
    <td class={`${isNow ? "now" : ""} ${own.stuck ? "stuck" : own.waits ? "waits" : ""} ${step.kind}`}>
      {own.stuck ? "✗ waits for ever" : null}
      {from.length && from.some((giver) => giver !== device) ? (
        <div class="from">← {from.map((giver) => names[giver]!.split(" ")[0]).join(" ")}</div>
      ) : null}
      <div class="terms">
        {own.cells.map((cell) => (
          <code style={colour(cell) < 0 ? {} : { background: DEVICES[colour(cell)], color: "#14171c" }}>{cell}</code>
        ))}
      </div>
    </td>
  );
}

/** The device that a term, such as `A` or `xA₀`, began on; none for sums, which get no colour. */
function colour(cell: string): number {
  const found = /^[−-]?(?:\w*[a-z_])?([A-Z])[\d₀-₉]*$/.exec(cell);
  return found ? (found[1]!.charCodeAt(0) - 65) % DEVICES.length : -1;
}
