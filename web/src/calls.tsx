// The player of the cache: a column for each call that was traced, green where its key fits the nearest before.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Call, Calls } from "./data";

/** Whether the cache answers a call: it fits one that was traced before. */
function isHit(call: Call): boolean {
  return call.nearest !== null && !Object.keys(call.differs).length;
}

export function CallsView({ calls }: { calls: Calls }) {
  const last = calls.calls.length - 1;
  const [at, setAt] = useState(last);
  const go = (next: number) => setAt(Math.max(0, Math.min(last, next)));
  const now = calls.calls[at]!;
  const shown = calls.calls.slice(0, at + 1);
  const box = useRef<HTMLDivElement>(null);
  // The call that is compared is the last, and may stand outside of the column.
  useLayoutEffect(() => {
    box.current!.scrollLeft = box.current!.scrollWidth;
  }, [at]);
  return (
    <div class="lines calls">
      <div class="player" data-player="calls">
        <b>calls</b>
        <button aria-label="one call back" onClick={() => go(at - 1)}>‹</button>
        <input type="range" aria-label="call" min={0} max={last} value={at}
          onInput={(event) => go(Number((event.target as HTMLInputElement).value))} />
        <button aria-label="one call on" onClick={() => go(at + 1)}>›</button>
        <span class="now">
          call {at + 1} of {last + 1}
          {now.nearest === null
            ? ": nothing was there before"
            : isHit(now)
              ? `: the cache answers it by what call ${now.nearest + 1} has traced`
              : `, compared with call ${now.nearest + 1}, the nearest before`}
        </span>
      </div>
      <div class="wide" ref={box}>
      <table>
        <thead>
          <tr>
            <th>key of the cache</th>
            {shown.map((call, c) => (
              <th class={c === now.nearest ? "nearest" : ""}>call {c + 1} <i>{call.at.split(" ")[0] || "this page"}</i></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {calls.parts.map((part) => (
            <tr>
              <th>{part}</th>
              {shown.map((call, c) => {
                const text = call.key[part];
                if (text === undefined) return <td class={c === at ? "now" : ""} />;
                const why = call.differs[part];
                const state = call.nearest === null ? "first" : why ? "differs" : "fits";
                return (
                  <td class={`${state} ${c === at ? "now" : ""}`} title={why ?? ""}>
                    {state === "fits" ? "✓ " : state === "differs" ? "✗ " : ""}<code>{text}</code>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      </div>
      {now.words ? (
        <pre class="words">{now.words}</pre>
      ) : (
        <p class="empty">{isHit(now) ? "The whole key fits: nothing is traced." : "The first call is always traced."}</p>
      )}
      <p class="empty">Calls whose whole key fits leave nothing behind, and have no column; that of this page has one.</p>
    </div>
  );
}
