// A column of text whose lines fold, light and can be chosen.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { highlighted } from "./colors";
import { ends, type Column, type Equation } from "./data";
import type { Links } from "./links";

interface Props {
  column: Column;
  index: number;
  links: Links;
  equations: Equation[];
  onPoint(numbers: number[]): void;
  onChoose(column: number, line: number): void;
  onScrolled(column: number, line: number, offset: number): void;
}

export function Text({ column, index, links, equations, onPoint, onChoose, onScrolled }: Props) {
  const body = useRef<HTMLDivElement>(null);
  const last = useMemo(() => ends(column.lines), [column]);

  useLayoutEffect(() => {
    const element = body.current!;
    // What a fusion holds stands in a box with it.
    const boxes = new Map<number, string>();
    column.lines.forEach((line, i) => {
      const end = last[i]! - 1;
      if (column.key !== "optimized" || end <= i || !line.t.includes(" fusion(")) return;
      for (let k = i; k <= end; k++) boxes.set(k, ` fused${k === i ? " first" : ""}${k === end ? " last" : ""}" style="--box:${line.d * 1.2 + 0.1}em;`);
    });
    const html = column.lines.map((line, i) => {
      const folds = last[i]! > i + 1;
      const own = line.n ?? [];
      const roles = new Set(own.map((n) => equations[n]?.role));
      const role = roles.size === 1 && column.key !== "python" ? ` r-${[...roles][0]}` : "";
      const gone = column.key === "jaxpr" && own.length === 1 && equations[own[0]!]?.fate["stablehlo"];
      const state = `${role}${line.i ? " inferred" : ""}${gone ? " gone" : ""}`;
      const tail = gone ? `<span class="fate" title="${gone.replace(/"/g, "&quot;")}"> ⌀ ${gone.split(":")[0]}</span>` : "";
      const button = folds ? '<button class="fold" tabindex="-1" aria-label="fold"></button>' : "";
      return (
        `<div data-i="${i}" class="line${state}${boxes.get(i) ?? '" style="'}--at:${line.d * 1.2 + (line.r ? 3.4 : 1.4)}em">` +
        `${line.r ? `<span class="row">${line.r}</span>` : ""}${button}<span class="text">${highlighted(line.t, column.language)}</span>${tail}</div>`
      );
    });
    element.innerHTML = html.join("");
    links.drawn(index, [...element.children] as HTMLElement[]);
  }, [column]);

  const lineOf = (event: Event): number | null => {
    const row = (event.target as Element).closest<HTMLElement>(".line");
    return row ? Number(row.dataset["i"]) : null;
  };

  const fold = (line: number) => {
    const rows = body.current!.children;
    const folded = rows[line]!.classList.toggle("folded");
    for (let i = line + 1; i < last[line]!; i++) {
      rows[i]!.classList.toggle("hidden", folded);
      // What is folded inside stays so.
      if (!folded && rows[i]!.classList.contains("folded")) i = last[i]! - 1;
    }
  };

  const scrolled = useRef(0);
  return (
    <div
      class="lines"
      ref={body}
      onMouseOver={(event) => {
        const line = lineOf(event);
        onPoint(line === null ? [] : column.lines[line]!.n ?? []);
      }}
      onMouseLeave={() => onPoint([])}
      onClick={(event) => {
        const line = lineOf(event);
        if (line === null) return;
        if ((event.target as Element).closest(".fold")) fold(line);
        else onChoose(index, line);
      }}
      onDblClick={(event) => {
        const line = lineOf(event);
        if (line !== null && last[line]! > line + 1) fold(line);
      }}
      onWheel={() => {
        cancelAnimationFrame(scrolled.current);
        scrolled.current = requestAnimationFrame(() => {
          const box = body.current!;
          const middle = box.scrollTop + box.clientHeight / 3;
          const rows = box.children as HTMLCollectionOf<HTMLElement>;
          for (let i = 0; i < rows.length; i++) {
            const row = rows[i]!;
            if (row.offsetTop - box.offsetTop >= middle && column.lines[i]!.n && !row.classList.contains("hidden")) {
              onScrolled(index, i, row.offsetTop - box.offsetTop - box.scrollTop);
              return;
            }
          }
        });
      }}
    />
  );
}
