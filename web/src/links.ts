// Which lines light together.  Elements are found once; pointing changes classes, and renders nothing.

import type { Column } from "./data";

export interface Spot {
  column: number;
  line: number;
}

export class Links {
  private rows: HTMLElement[][] = [];
  private spots = new Map<number, Spot[]>();
  private lit: HTMLElement[] = [];
  private nodes = new Map<number, Element[]>();

  constructor(private columns: Column[]) {
    columns.forEach((column, c) =>
      column.lines.forEach((line, l) =>
        line.n?.forEach((number) => {
          const found = this.spots.get(number) ?? [];
          found.push({ column: c, line: l });
          this.spots.set(number, found);
        }),
      ),
    );
  }

  /** Remembers the elements of a column that was drawn. */
  drawn(column: number, rows: HTMLElement[]): void {
    this.rows[column] = rows;
  }

  row(spot: Spot): HTMLElement | undefined {
    return this.rows[spot.column]?.[spot.line];
  }

  spotsOf(number: number): Spot[] {
    return this.spots.get(number) ?? [];
  }

  /** The first line of a column that belongs to one of these equations. */
  first(column: number, numbers: number[]): number | null {
    let best: number | null = null;
    for (const number of numbers) {
      for (const spot of this.spotsOf(number)) {
        if (spot.column === column && (best === null || this.fits(spot, best, numbers))) best = spot.line;
      }
    }
    return best;
  }

  /** Whether a line is closer to the equations than another: it belongs to fewer others. */
  private fits(spot: Spot, best: number, numbers: number[]): boolean {
    const lines = this.columns[spot.column]!.lines;
    const others = (line: number) =>
      (lines[line]!.n ?? []).filter((n) => !numbers.includes(n)).length + (lines[line]!.i ?? 0);
    const difference = others(spot.line) - others(best);
    return difference < 0 || (difference === 0 && spot.line < best);
  }

  /** Remembers what else stands for an equation: a box of the graph, a value. */
  stands(number: number, element: Element): void {
    const found = this.nodes.get(number) ?? [];
    found.push(element);
    this.nodes.set(number, found);
  }

  forget(where: Element): void {
    for (const [number, elements] of this.nodes) {
      this.nodes.set(number, elements.filter((e) => !where.contains(e)));
    }
  }

  /** Lights all that belongs to some equations. */
  light(numbers: number[], name: string): void {
    this.dark(name);
    for (const number of numbers) {
      for (const spot of this.spotsOf(number)) {
        const element = this.row(spot);
        if (element) {
          element.classList.add(name);
          this.lit.push(element);
        }
      }
      for (const element of this.nodes.get(number) ?? []) {
        element.classList.add(name);
        this.lit.push(element as HTMLElement);
      }
    }
  }

  dark(name: string): void {
    this.lit = this.lit.filter((element) => {
      element.classList.remove(name);
      return element.classList.contains("lit") || element.classList.contains("chosen");
    });
  }
}
