// The program as a graph, laid out by dagre.  Boxes that hold others open and close.

import dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Data } from "./data";
import type { Links } from "./links";

interface Props {
  data: Data;
  links: Links;
  onPoint(numbers: number[]): void;
  onChoose(number: number): void;
}

const MOST_TAKERS = 4;

export function GraphView({ data, links, onPoint, onChoose }: Props) {
  const [open, setOpen] = useState<Set<string>>(new Set());
  const opened = useRef<string | null>(null);
  const drawing = useRef<SVGSVGElement>(null);
  const holders = useMemo(() => new Set(data.graph.nodes.map((n) => n.in).filter((n) => n !== null)), [data]);

  const laid = useMemo(() => {
    const parents = new Map(data.graph.nodes.map((n) => [n.id, n.in]));
    // The innermost box that is shown of those that a node stands in.
    const shown = (id: string): string => {
      const chain = [id];
      for (let up = parents.get(id); up; up = parents.get(up)) chain.unshift(up);
      for (const each of chain) if (!open.has(each)) return each;
      return id;
    };
    const graph = new dagre.graphlib.Graph({ compound: true });
    graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 34, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of data.graph.nodes) {
      if (node.in !== null && !graph.hasNode(node.in)) continue;
      if (node.in !== null && !open.has(node.in)) continue;
      graph.setNode(node.id, {
        label: node.label,
        width: Math.max(44, node.label.length * 7.4 + 18),
        height: 26,
        isOpen: open.has(node.id) && holders.has(node.id),
      });
      if (node.in !== null) graph.setParent(node.id, node.in);
    }
    // An arrow to an open box goes to the first box in it.
    const entry = (id: string): string | null => {
      const found = shown(id);
      if (!graph.hasNode(found)) return null;
      let inner = found;
      while (graph.children(inner)?.length) inner = graph.children(inner)![0]!;
      return inner;
    };
    const labels = new Map<string, string[]>();
    const takers = new Set(data.graph.edges.filter((e) => entry(e.from) === "gin").map((e) => entry(e.to)));
    const [firstTaker] = takers;
    for (const edge of data.graph.edges) {
      const from = entry(edge.from);
      const to = entry(edge.to);
      if (!from || !to || from === to) continue;
      // Arguments in a closed box may go everywhere: so many arrows would hide the rest.
      if (from === "gin" && takers.size > MOST_TAKERS && to !== firstTaker) continue;
      const key = `${from} ${to}`;
      labels.set(key, [...(labels.get(key) ?? []), edge.label]);
    }
    for (const [key, found] of labels) {
      const [from, to] = key.split(" ") as [string, string];
      const label = found.length > 2 ? `${found.length} values` : [...new Set(found)].join(" ");
      graph.setEdge(from, to, { label, width: label.length * 5.6, height: 12, labelpos: "c" });
    }
    dagre.layout(graph);
    return graph;
  }, [data, open, holders]);

  useEffect(() => {
    const svg = drawing.current!;
    links.forget(svg);
    const box = svg.parentElement!;
    // Begin with the first box; with the first in it where one was opened.
    const first = opened.current === null ? laid.nodes()[0] : laid.children(opened.current)?.[0];
    if (first && (!open.size || opened.current !== null)) {
      const { x, y } = laid.node(first);
      box.scrollLeft = x - box.clientWidth / 2;
      if (y < box.scrollTop || y > box.scrollTop + box.clientHeight) box.scrollTop = y - 60;
    }
    svg.querySelectorAll<SVGElement>("[data-n]").forEach((e) => links.stands(Number(e.dataset["n"]), e));
  }, [laid]);

  const size = laid.graph();
  const toggle = (id: string) => {
    const next = new Set(open);
    const closes = next.delete(id);
    if (!closes) next.add(id);
    opened.current = closes ? null : id;
    setOpen(next);
  };
  return (
    <div class="lines graph">
      <svg ref={drawing} width={size.width} height={size.height} role="img" aria-label="graph of the program">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" class="head" />
          </marker>
        </defs>
        {laid.nodes().map((id) => ({ id, node: laid.node(id) as any }))
          .sort((a, b) => Number(b.node.isOpen) - Number(a.node.isOpen))
          .map(({ id, node }) => {
          const number = Number(id);
          const isEquation = !Number.isNaN(number);
          const role = isEquation ? data.equations[number]?.role : id.startsWith("g") ? "group" : "end";
          return (
            <g
              class={`node r-${role}${node.isOpen ? " open" : ""}`}
              data-n={isEquation ? number : undefined}
              transform={`translate(${node.x - node.width / 2},${node.y - node.height / 2})`}
              onMouseOver={() => onPoint(isEquation ? [number] : [])}
              onMouseLeave={() => onPoint([])}
              onClick={() => {
                if (holders.has(id)) toggle(id);
                if (isEquation) onChoose(number);
              }}
            >
              <rect width={node.width} height={node.height} rx={role === "end" ? 13 : 4} />
              <text x={node.isOpen ? 8 : node.width / 2} y={node.isOpen ? 14 : node.height / 2 + 4} text-anchor={node.isOpen ? "start" : "middle"}>
                {node.label}
                {holders.has(id) ? (node.isOpen ? " ▾" : " ▸") : ""}
              </text>
            </g>
          );
        })}
        {laid.edges().map((edge) => {
          const { points, label, x, y } = laid.edge(edge) as any;
          const path = (points as { x: number; y: number }[]).map((p, i) => `${i ? "L" : "M"}${p.x} ${p.y}`).join("");
          return (
            <g class="edge">
              <path d={path} marker-end="url(#arrow)" />
              <text x={x} y={y + 3} text-anchor="middle">{label}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
