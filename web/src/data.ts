// What a page shows: the JSON that `Page.data` gives, and which lines belong together.

export interface Line {
  /** The text without indentation. */
  t: string;
  /** How deep it stands; deeper lines below fold with it. */
  d: number;
  /** The numbers of the equations that it belongs to. */
  n?: number[];
  /** 1 if the compiler recorded no origin, and its users' is shown. */
  i?: number;
  /** The number of the line in its file. */
  r?: number;
}

export interface Column {
  key: string;
  title: string;
  language: string;
  lines: Line[];
}

export interface Equation {
  number: number;
  name: string;
  holder: number | null;
  depth: number;
  types: string[];
  explained: string[];
  bytes: number;
  meaning: string;
  why: string;
  role: string;
  line: string;
  called: string[];
  fate: Record<string, string>;
  /** Which of the moments of the page it was written down in; null where no function of the user's ran. */
  moment: number | null;
}

/** A variable of Python that held tracers, and the line that gave it them. */
export interface Held {
  line: number;
  name: string;
  type: string;
  tracer: string;
  n: number | null;
}

export interface Value {
  name: string;
  type: string;
  shape: number[];
  size: number;
  role?: string;
  number?: number;
  least?: number;
  greatest?: number;
  nans: number;
  zeros: number;
  numbers?: (number | string)[];
  picture?: { rows: number; columns: number; means: (number | string)[] };
  devices: { device: string; part: [number, number][] }[];
}

export interface Graph {
  nodes: { id: string; label: string; in: string | null }[];
  edges: { from: string; to: string; label: string }[];
}

export interface DeviceCell {
  before: string[];
  after: string[];
  shape: number[];
}

export interface Step {
  number: number;
  title: string;
  line: string;
  kind: string;
  arrows: [number, number][];
  devices: { cells: string[]; shape: number[]; waits: boolean; stuck: boolean }[];
}

export interface Devices {
  names: string[];
  legend: { name: string; meaning: string }[];
  steps: Step[];
}

export interface Cell {
  text: string;
  needs: string[];
  sum: boolean;
  order: number;
}

export interface Derivative {
  rows: { number: number; name: string; line: string; n: number[]; known: string[]; linear: Cell[]; transposed: Cell[] }[];
  residuals: { name: string; type: string; bytes: number }[];
  tangents: string[];
  cotangents: string[];
  gradients: string[];
}

export interface Batch {
  size: number;
  arguments: { name: string; batched: string; dim: number | null }[];
  rows: { number: number; name: string; line: string; n: number[]; text: string; dims: (number | null)[]; became: string[] }[];
}

export interface Placed {
  name: string;
  type: string;
  spec: string;
  bytes: number;
  /** For each row and column of tiles the devices that hold it; null where there are too many. */
  tiles: number[][][] | null;
}

export interface WhatIf {
  mesh: [string, number][];
  speeds: Record<string, number>;
  choices: {
    name: string;
    seconds: number;
    memory: number;
    times: Record<string, number>;
    moved: Record<string, number>;
    collectives: { kind: string; axes: string[] | null; result: string; bytes: number; times: number; moved: number; inside: string[]; line: string; n?: number[] }[];
    arguments: Placed[];
    results: Placed[];
  }[];
}

/** One call for which the function was traced: the key of the cache, and what did not fit. */
export interface Call {
  at: string;
  nearest: number | null;
  key: Record<string, string>;
  differs: Record<string, string>;
  words: string;
}

export interface Calls {
  parts: string[];
  calls: Call[];
}

/** What each device does where none can go on, and the oracle's words. */
export interface Stuck {
  words: string;
  devices: { name: string; does: string; waits: boolean }[];
}

export interface Data {
  version: number;
  name: string;
  columns: Column[];
  equations: Equation[];
  moments: Held[][];
  graph: Graph;
  values: Value[];
  devices?: Devices | null;
  derivative?: Derivative | null;
  batch?: Batch | null;
  whatIf?: WhatIf | null;
  calls?: Calls | null;
  stuck?: Stuck | null;
}

/** The data of the page: JSON, packed by gzip, in letters. */
export async function read(): Promise<Data> {
  const letters = atob(document.getElementById("data")!.textContent!.trim());
  const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Data;
}

/** For each line the index of the first line after those that fold with it. */
export function ends(lines: Line[]): number[] {
  const found = new Array<number>(lines.length);
  const open: number[] = [];
  lines.forEach((line, index) => {
    while (open.length && lines[open[open.length - 1]!]!.d >= line.d) found[open.pop()!] = index;
    open.push(index);
  });
  for (const index of open) found[index] = lines.length;
  return found;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${Number(count.toPrecision(4))} ${units[unit]}`;
}
