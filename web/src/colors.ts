// Highlighted text, and colours of numbers that colour-blind people can tell apart.

const WORDS: Record<string, RegExp> = {
  python:
    /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|lambda|if|else|elif|for|while|in|import|from|as|with|class|not|and|or|is|None|True|False|yield|raise|try|except|pass)\b|\b(\d[\w.]*)\b/gm,
  jaxpr:
    /()("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(lambda|let|in)\b|(:(?:bool|key|u?i\d+|bf16|f\d+|c\d+|float0)[\w<>]*\[[^\]]*\](?:\{[^}]*\})?)/g,
  mlir: /()("(?:[^"\\]|\\.)*")|\b(module|func\.func|return|cond|do|public|private|stablehlo\.return)\b|(tensor<[^>]*>)/g,
  hlo: /()("(?:[^"\\]|\\.)*")|\b(ENTRY|ROOT|fusion|while|conditional|call|all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)\b|(\b(?:pred|bf16|[sufc]\d+)\[[^\]]*\](?:\{[^}]*\})?)/g,
};
const CLASSES = ["comment", "string", "word", "type"];

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

export function highlighted(text: string, language: string): string {
  const pattern = WORDS[language];
  if (!pattern) return escaped(text);
  let html = "";
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    const kind = match.slice(1).findIndex((group) => group);
    if (kind < 0) continue;
    html += escaped(text.slice(last, match.index));
    html += `<span class="s-${CLASSES[kind]}">${escaped(match[0])}</span>`;
    last = match.index + match[0].length;
  }
  return html + escaped(text.slice(last));
}

const BLUE = [0, 114, 178];
const WHITE = [247, 247, 247];
const ORANGE = [213, 94, 0];

/** Blue below zero, white at zero, orange above; black text can be read on all but the ends. */
export function shade(value: number | string, least: number, greatest: number): string {
  if (typeof value === "string") return "repeating-linear-gradient(45deg,#999 0 3px,#ddd 3px 6px)";
  const most = Math.max(Math.abs(least), Math.abs(greatest)) || 1;
  const part = Math.max(-1, Math.min(1, value / most));
  const end = part < 0 ? BLUE : ORANGE;
  const mixed = WHITE.map((w, i) => Math.round(w + (end[i]! - w) * Math.abs(part)));
  return `rgb(${mixed.join(",")})`;
}

/** Fills for devices, Okabe and Ito's palette lightened: black text can be read on each. */
export const DEVICES = [
  "#8ecdf0", "#f6cf73", "#7fd1b9", "#f2a98b", "#dcb3cf", "#f3ec9b", "#a9c4e4", "#d9d9d9",
];
