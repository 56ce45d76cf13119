// The values of one run: cells with numbers on pointing, pictures of what is large, and who holds what.

import { DEVICES, shade } from "./colors";
import type { Value } from "./data";
import type { Links } from "./links";

interface Props {
  values: Value[];
  links: Links;
  onPoint(numbers: number[]): void;
  onChoose(number: number): void;
}

function holders(value: Value, index: number[]): number[] {
  const found: number[] = [];
  value.devices.forEach(({ part }, device) => {
    if (part.every(([start, stop], d) => index[d]! >= start && index[d]! < stop)) found.push(device);
  });
  return found;
}

function place(flat: number, shape: number[]): number[] {
  const index: number[] = [];
  for (const size of [...shape].reverse()) {
    index.unshift(flat % size);
    flat = Math.floor(flat / size);
  }
  return index;
}

function Cells({ value }: { value: Value }) {
  const numbers = value.numbers ?? value.picture!.means;
  const wide = value.picture ? value.picture.columns : value.shape[value.shape.length - 1] ?? 1;
  const isSplit = value.devices.length > 1 && value.numbers !== undefined;
  return (
    <div class="cells" style={{ gridTemplateColumns: `repeat(${Math.max(1, wide)}, var(--cell))` }}>
      {numbers.map((number, i) => {
        const index = value.numbers ? place(i, value.shape) : [];
        const on = isSplit ? holders(value, index) : [];
        const split = on.length && on.length < value.devices.length ? DEVICES[on[0]! % DEVICES.length] : null;
        const title = value.numbers
          ? `${value.name}[${index.join(", ")}] = ${number}` +
            (on.length ? ` on ${on.map((d) => value.devices[d]!.device).join(", ")}` : "")
          : `mean ${number}`;
        return (
          <span
            title={title}
            style={{
              background: shade(number, value.least ?? 0, value.greatest ?? 0),
              boxShadow: split ? `inset 0 -4px 0 ${split}` : "none",
            }}
          />
        );
      })}
    </div>
  );
}

function range(value: Value): string {
  const parts = [];
  if (value.size === 1 && value.numbers) parts.push(String(value.numbers[0]));
  else if (value.least !== undefined) parts.push(`${value.least} … ${value.greatest}`);
  if (value.nans) parts.push(`${value.nans} NaN`);
  if (value.zeros && value.size > 1) parts.push(`${value.zeros} of ${value.size} are zero`);
  return parts.join(", ");
}

export function Values({ values, links, onPoint, onChoose }: Props) {
  if (!values.length) return <p class="empty">Nothing was run: arguments have no values, or there are effects.</p>;
  return (
    <div class="lines values">
      {values.map((value) => (
        <div
          class="value"
          key={`${value.name}`}
          ref={(element) => {
            if (element && value.number !== undefined) links.stands(value.number, element);
          }}
          onMouseOver={() => onPoint(value.number === undefined ? [] : [value.number])}
          onMouseLeave={() => onPoint([])}
          onClick={() => value.number !== undefined && onChoose(value.number)}
        >
          <div class="head">
            <b>{value.name}</b>
            <span class="s-type">:{value.type}</span> <i>{value.role ?? ""}</i>
          </div>
          <div class="range">{range(value)}</div>
          {value.size > 1 ? <Cells value={value} /> : null}
          {value.devices.length > 1 ? (
            <div class="holders">
              {value.devices.map(({ device, part }, d) => (
                <span style={{ borderColor: DEVICES[d % DEVICES.length] }}>
                  {device} [{part.map(([start, stop]) => `${start}:${stop}`).join(", ")}]
                </span>
              ))}
            </div>
          ) : null}
        </div>
      ))}
    </div>
  );
}
